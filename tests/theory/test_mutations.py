"""The judge can say no: a good trace with one event removed, doubled or moved is good no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from django_declarative_cron.theory import check

from .examples import EXAMPLES
from .notation import Case, Mode, Record, both_modes, trace

GOOD = [case for case in EXAMPLES if (case.letter, case.repaired) == ("ok", "ok")]
ENDS = ("REs", "REf")


def records_of(case: Case) -> list[Record]:
    records = trace(case.text)
    for record in records:
        record.pop("position")
    return records


def axioms(records: list[Record], mode: Mode) -> set[str]:
    return {v.axiom for v in check(records, mode, pulses="stated")}


# --- what is done to the record at an index ---


def remove(records: list[Record], index: int) -> None:
    del records[index]


def double(records: list[Record], index: int) -> None:
    records.insert(index, records[index])


def move_before_what_it_waited_for(records: list[Record], index: int) -> None:
    just_before = records[index - 1]["at"] - timedelta(milliseconds=1)
    records.insert(index - 1, records.pop(index) | {"at": just_before})


def move_before_its_start(records: list[Record], index: int) -> None:
    start = max(i for i, each in enumerate(records[:index]) if each["event"] == "RS")
    records.insert(start, records.pop(index) | {"at": records[start]["at"]})


def let_a_stop_return_before_it(records: list[Record], index: int) -> None:
    at = records[index]["at"]
    records[index:index] = [{"at": at, "event": "SS"}, {"at": at, "event": "SE"}]


# --- which records ---


def of(*kinds: str) -> Callable[[list[str], int], bool]:
    return lambda events, index: events[index] in kinds


def starts_that_end(events: list[str], index: int) -> bool:
    """An interrupted run leaves no end behind."""
    ends = (kind for kind in events[index:] if kind in (*ENDS, "Crash"))
    return events[index] == "RS" and next(ends) != "Crash"


def dues_that_a_start_waited_for_alone(events: list[str], index: int) -> bool:
    rest = events[index + 1 :]
    until_start = rest[: rest.index("RS")] if "RS" in rest else rest
    alone = "Due" not in until_start and events[index - 1 : index] != ["Due"]
    return events[index] == "Due" and alone


FAULTS = [
    (remove, starts_that_end, "S4"),
    (double, of("RS"), "S1"),
    (move_before_what_it_waited_for, of("RS"), "S1"),
    (double, of(*ENDS), "S4"),
    (move_before_its_start, of(*ENDS), "S4"),
    (let_a_stop_return_before_it, of(*ENDS), "S3"),
    (remove, dues_that_a_start_waited_for_alone, "S1"),
    (remove, of("IEs"), "S1"),
]


def planted() -> Iterator[object]:
    for change, is_meant, axiom in FAULTS:
        for case in GOOD:
            events = [record["event"] for record in records_of(case)]
            for index in filter(lambda i: is_meant(events, i), range(len(events))):
                name = f"{change.__name__} {events[index]} {case.name}:{index}"
                yield pytest.param(change, case, index, axiom, id=name)


@pytest.mark.requirement("004 Safety Axioms/2", "004 S4")
@both_modes
@pytest.mark.parametrize(("change", "case", "index", "axiom"), list(planted()))
def test_a_fault_is_found(
    change: Callable[[list[Record], int], None], case: Case, index: int, axiom: str, mode: Mode
) -> None:
    records = records_of(case)
    change(records, index)
    assert axiom in axioms(records, mode)


@both_modes
@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.name)
def test_ticks_that_only_start_a_minute_change_nothing(case: Case, mode: Mode) -> None:
    records = records_of(case)
    ticked = [
        each
        for record in records
        for each in ([{"at": record["at"], "event": "Tick"}] if record["event"] == "Due" else [])
        + [record]
    ]
    assert axioms(ticked, mode) == axioms(records, mode) == set()


def test_the_good_traces_are_there() -> None:
    assert [case.name for case in GOOD] == ["1", "5", "10", "13", "15", "21", "22"]
