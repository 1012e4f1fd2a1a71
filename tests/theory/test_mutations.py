"""The judge can say no: a good trace with one event removed, doubled or moved is good no more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from django_declarative_cron.theory import check

from .examples import EXAMPLES
from .notation import Record
from .test_examples import Mode, both_modes

GOOD = [example for example in EXAMPLES if example.letter == "ok" and example.repaired is None]
Case = tuple[int, int]


def cases(*kinds: str) -> Iterator[Case]:
    """Give example and index of each record of some kinds in the good traces."""
    for example in GOOD:
        for index, record in enumerate(example.records):
            if record["event"] in kinds:
                yield example.number, index


def records_of(number: int) -> list[Record]:
    records = EXAMPLES[number - 1].records
    for record in records:
        record.pop("position")
    return records


def axioms(records: list[Record], mode: Mode) -> set[str]:
    return {v.axiom for v in check(records, mode, pulses="stated")}


def ended() -> Iterator[Case]:
    """Give the starts of runs that end; an interrupted one leaves no end behind."""
    for number, index in cases("RS"):
        rest = [record["event"] for record in records_of(number)[index:]]
        if next(kind for kind in rest if kind in ("REs", "REf", "Crash")) != "Crash":
            yield number, index


@pytest.mark.requirement("004 Safety Axioms/2")
@both_modes
@pytest.mark.parametrize(("number", "index"), list(ended()))
def test_a_start_removed_leaves_an_end_without_one(number: int, index: int, mode: Mode) -> None:
    records = records_of(number)
    del records[index]
    assert "S4" in axioms(records, mode)


@both_modes
@pytest.mark.parametrize(("number", "index"), list(cases("RS")))
def test_a_start_doubled(number: int, index: int, mode: Mode) -> None:
    records = records_of(number)
    records.insert(index, records[index])
    assert "S1" in axioms(records, mode)


@both_modes
@pytest.mark.parametrize(("number", "index"), list(cases("RS")))
def test_a_start_moved_before_what_it_waited_for(number: int, index: int, mode: Mode) -> None:
    records = records_of(number)
    just_before = records[index - 1]["at"] - timedelta(milliseconds=1)
    start = records.pop(index) | {"at": just_before}
    records.insert(index - 1, start)
    assert "S1" in axioms(records, mode)


@both_modes
@pytest.mark.parametrize(("number", "index"), list(cases("REs", "REf")))
def test_an_end_doubled(number: int, index: int, mode: Mode) -> None:
    records = records_of(number)
    records.insert(index, records[index])
    assert "S4" in axioms(records, mode)


@pytest.mark.requirement("004 S4")
@both_modes
@pytest.mark.parametrize(("number", "index"), list(cases("REs", "REf")))
def test_an_end_moved_before_its_start(number: int, index: int, mode: Mode) -> None:
    records = records_of(number)
    start = max(i for i, r in enumerate(records[:index]) if r["event"] == "RS")
    end = records.pop(index) | {"at": records[start]["at"]}
    records.insert(start, end)
    assert "S4" in axioms(records, mode)


@both_modes
@pytest.mark.parametrize(("number", "index"), list(cases("REs", "REf")))
def test_a_stop_that_returns_before_an_end(number: int, index: int, mode: Mode) -> None:
    records = records_of(number)
    at = records[index]["at"]
    records[index:index] = [{"at": at, "event": "SS"}, {"at": at, "event": "SE"}]
    assert "S3" in axioms(records, mode)


def owing(number: int) -> Iterator[int]:
    """Give the dues of a trace that a start waited for alone."""
    records = EXAMPLES[number - 1].records
    for index, record in enumerate(records):
        until = next(
            (i for i, r in enumerate(records) if i > index and r["event"] == "RS"), len(records)
        )
        between = [r["event"] for r in records[index + 1 : until]]
        before = [r["event"] for r in records[:index]][-1:]
        if record["event"] == "Due" and "Due" not in between and before != ["Due"]:
            yield index


@both_modes
@pytest.mark.parametrize(
    ("number", "index"), [(each.number, index) for each in GOOD for index in owing(each.number)]
)
def test_a_due_removed(number: int, index: int, mode: Mode) -> None:
    records = records_of(number)
    del records[index]
    assert "S1" in axioms(records, mode)


@both_modes
@pytest.mark.parametrize(("number", "index"), list(cases("IEs")))
def test_an_initialisation_removed(number: int, index: int, mode: Mode) -> None:
    records = records_of(number)
    started = any(r["event"] == "RS" for r in records[index:])
    del records[index]
    assert started
    assert "S1" in axioms(records, mode)


@both_modes
@pytest.mark.parametrize("number", [each.number for each in GOOD])
def test_ticks_that_only_start_a_minute_change_nothing(number: int, mode: Mode) -> None:
    records = records_of(number)
    ticked = [
        each
        for record in records
        for each in ([{"at": record["at"], "event": "Tick"}] if record["event"] == "Due" else [])
        + [record]
    ]
    assert axioms(ticked, mode) == axioms(records, mode) == set()


def test_the_good_traces_are_there() -> None:
    assert [each.number for each in GOOD] == [1, 5, 10, 13, 15, 21, 22]
