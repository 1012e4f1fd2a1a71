"""Presences of instances, and runs in flight, as the trace understands them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from django_declarative_cron.store.trace_builder import History, Sources, Writer, ending
from django_declarative_cron.store.trace_values import (
    Absence,
    Busy,
    Flights,
    Life,
    Presence,
    Ran,
    Span,
    frozen,
    lived_twice,
    presences,
)

from .conftest import utc


def _life(began: int, ended: int | None, **changes: Any) -> Life:
    """Make a life; hours, and a stop where no other end is named."""
    values: dict[str, Any] = {"is_orderly": ended is not None, **changes}
    if "asked" in values:
        values["asked"] = _hour(values["asked"])
    values["lapses"] = tuple((_hour(a), _hour(b)) for a, b in values.get("lapses", ()))
    return Life(uuid4(), _hour(began), None if ended is None else _hour(ended), **values)


def _hour(hour: int) -> Any:
    return utc(f"{hour:02}:00")


def _hours(spans: list[Span]) -> list[tuple[int, int]]:
    return [(since.hour, until.hour) for since, until in spans]


CRASH = {"is_orderly": False}

TOGETHER: list[tuple[str, list[Life], list[tuple[Any, ...]]]] = [
    ("one that lives", [_life(1, None)], [(1, None, False, None)]),
    ("one that stops", [_life(1, 5, asked=4)], [(1, 5, True, 4)]),
    ("a stop that nobody noted as asked for", [_life(1, 5)], [(1, 5, True, 5)]),
    ("one that crashes", [_life(1, 5, **CRASH)], [(1, 5, False, None)]),
    ("one that dies stopping", [_life(1, 5, asked=4, **CRASH)], [(1, 5, False, 4)]),
    ("one that drains", [_life(1, None, asked=4)], [(1, None, False, 4)]),
    (
        "one after another",
        [_life(6, 7), _life(1, 5, **CRASH)],
        [(1, 5, False, None), (6, 7, True, 7)],
    ),
    ("again at once", [_life(1, 5), _life(5, 7)], [(1, 5, True, 5), (5, 7, True, 7)]),
    ("a crash with a survivor", [_life(1, 5, **CRASH), _life(4, 7)], [(1, 7, True, 7)]),
    ("a stop with a survivor", [_life(1, 5), _life(4, 7, **CRASH)], [(1, 7, False, None)]),
    ("within a longer one", [_life(1, 9, asked=8), _life(2, 3)], [(1, 9, True, 8)]),
    (
        "one drains, the next lives",
        [_life(1, None, asked=4), _life(4, None)],
        [(1, None, False, None)],
    ),
    ("all are asked", [_life(1, 9, asked=4), _life(2, 9, asked=5)], [(1, 9, True, 5)]),
]


@pytest.mark.parametrize(
    ("lives", "expected"), [each[1:] for each in TOGETHER], ids=[each[0] for each in TOGETHER]
)
def test_lives_that_overlap_are_one_presence(
    lives: list[Life], expected: list[tuple[Any, ...]]
) -> None:
    found = [
        (
            each.began.hour,
            each.ended and each.ended.hour,
            each.is_orderly,
            each.asked and each.asked.hour,
        )
        for each in presences(lives)
    ]
    assert found == expected


@pytest.mark.parametrize(
    ("lives", "expected"),
    [
        ([_life(1, 9)], []),
        ([_life(1, 9, lapses=[(3, 5), (6, 7)])], [(3, 5), (6, 7)]),
        ([_life(1, 9, lapses=[(3, 5), (4, 7)])], [(3, 7)]),
        ([_life(1, None, lapses=[(3, 5)])], [(3, 5)]),
        ([_life(1, 9, lapses=[(3, 6)]), _life(2, 9)], []),
        ([_life(1, 9, lapses=[(3, 6)]), _life(2, 9, lapses=[(4, 8)])], [(4, 6)]),
        ([_life(1, 9, lapses=[(3, 6)]), _life(2, 5)], [(5, 6)]),
        # It was asked to stop, or died, as it came to.
        ([_life(1, 9, asked=5, lapses=[(3, 5)])], [(3, 5)]),
        ([_life(1, 9, asked=5, lapses=[(3, 6)])], [(3, 5)]),
        ([_life(1, 5, lapses=[(3, 5)], **CRASH)], [(3, 5)]),
        ([_life(1, 9, asked=5, lapses=[(3, 5)]), _life(2, 4)], [(4, 5)]),
        ([_life(1, 9, lapses=[(5, 3)])], []),
        ([_life(1, 9, asked=3), _life(5, None)], [(3, 5)]),
        ([_life(1, 9, asked=3), _life(2, 4, **CRASH), _life(5, None)], [(4, 5)]),
        ([_life(1, 9, asked=3)], []),
        ([_life(1, None, asked=3, lapses=[(2, 5)]), _life(6, None)], [(2, 6)]),
    ],
)
def test_a_deployment_is_frozen_while_none_of_its_instances_can_start_anything(
    lives: list[Life], expected: list[tuple[int, int]]
) -> None:
    [presence] = presences(lives)
    assert _hours(frozen(presence)) == expected


def test_clocks_set_back_show_minutes_twice() -> None:
    [presence] = presences([_life(1, 9, lapses=[(5, 3), (6, 7), (8, 7)])])
    assert _hours(lived_twice(presence)) == [(3, 5), (7, 8)]


def _written(spans: list[tuple[int, int]], instants: list[int]) -> list[tuple[str, int, int]]:
    writer = Writer()
    writer.freeze((_hour(since), _hour(until)) for since, until in spans)
    return [
        (record["event"], record["at"].hour, record.get("until", record["at"]).hour)
        for at in instants
        for record in writer.write(_hour(at), "Tick")
    ]


@pytest.mark.parametrize(
    ("spans", "instants", "expected"),
    [
        ([(2, 4)], [1, 5], [("Tick", 1, 1), ("Freeze", 2, 4), ("Tick", 5, 5)]),
        ([(2, 4)], [1, 3], [("Tick", 1, 1), ("Freeze", 2, 3), ("Tick", 3, 3)]),
        (
            [(2, 4)],
            [3, 5],
            [("Freeze", 2, 3), ("Tick", 3, 3), ("Freeze", 3, 4), ("Tick", 5, 5)],
        ),
        ([(2, 4)], [4], [("Freeze", 2, 4), ("Tick", 4, 4)]),
        ([(2, 4)], [1], [("Tick", 1, 1)]),
        ([(2, 3), (4, 5)], [6], [("Freeze", 2, 3), ("Freeze", 4, 5), ("Tick", 6, 6)]),
    ],
)
def test_what_acts_is_not_frozen(
    spans: list[tuple[int, int]], instants: list[int], expected: list[tuple[str, int, int]]
) -> None:
    assert _written(spans, instants) == expected


def test_a_freeze_that_an_action_cut_goes_on_after_it() -> None:
    writer = Writer()
    writer.freeze([(_hour(2), _hour(4))])
    records = [record for at in (3, 5) for record in writer.write(_hour(at), "Tick")]
    assert [record["at"] for record in records][2] > _hour(3)


def test_an_instant_never_lies_before_the_one_before() -> None:
    assert _written([], [3, 2, 4]) == [("Tick", 3, 3), ("Tick", 3, 3), ("Tick", 4, 4)]


# --- runs in flight ---


NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
STARTED, FOUND, OVER, UNTIL = (NOON + number * MINUTE for number in (1, 5, 9, 60))
DEAD, LIVING = UUID(int=1), UUID(int=2)
WORKER = UUID(int=9)


def _ran(finished_at: datetime | None, outcome: str, instance: UUID | None = DEAD) -> Ran:
    return Ran(1, "t", STARTED, finished_at, outcome, "due", instance)


def _presence(*, is_orderly: bool, ended: datetime | None = OVER) -> Presence:
    """Give a time in which one instance died, and the other stopped or died last."""
    (found,) = presences(
        [Life(DEAD, NOON, STARTED + MINUTE), Life(LIVING, NOON, ended, is_orderly=is_orderly)]
    )
    return found


@pytest.mark.parametrize(
    ("run", "is_orderly", "at", "event", "retry_at"),
    [
        # What has ended has ended then.
        (_ran(FOUND, "succeeded"), False, FOUND, "REs", None),
        (_ran(FOUND, "failed"), False, FOUND, "REf", None),
        # Found by a survivor, it fails when it is found, and its retry is due at once.
        (_ran(FOUND, "interrupted"), False, FOUND, "REf", FOUND),
        # That may be the last act of the survivor, which crashes then.
        (_ran(OVER, "interrupted"), False, OVER, "REf", OVER),
        # Found when all are gone, it ended with the last: by its stop, or by the crash of all.
        (_ran(OVER, "interrupted"), True, OVER, "REf", OVER),
        (_ran(UNTIL, "interrupted"), True, OVER, "REf", UNTIL),
        (_ran(UNTIL, "interrupted"), False, None, "REf", UNTIL),
        # Not found yet, though who called it is dead.
        (_ran(None, "running"), True, OVER, "REf", UNTIL),
        (_ran(None, "running"), False, None, "REf", UNTIL),
        # It goes on.
        (_ran(None, "running", LIVING), True, None, "REf", None),
        # No worker had taken it up: a stop lets go of it, a crash does not.
        (_ran(None, "running", None), True, OVER, "REf", UNTIL),
        (_ran(None, "running", None), False, None, "REf", None),
    ],
)
def test_how_a_run_ended_in_a_time_that_ended(
    run: Ran, is_orderly: bool, at: datetime | None, event: str, retry_at: datetime | None
) -> None:
    said = {} if retry_at is None else {"retry_at": retry_at}
    assert ending(run, _presence(is_orderly=is_orderly), UNTIL, {}) == (at, event, said)


def test_how_a_run_ended_in_a_time_that_goes_on() -> None:
    goes_on = _presence(is_orderly=False, ended=None)
    lost = ending(_ran(None, "running"), goes_on, UNTIL, {})
    assert lost == (None, "REf", {"retry_at": UNTIL})
    found = ending(_ran(FOUND, "interrupted"), goes_on, UNTIL, {})
    assert found == (FOUND, "REf", {"retry_at": FOUND})


def test_how_a_run_ended_that_nobody_was_there_to_start() -> None:
    assert ending(_ran(None, "running"), None, UNTIL, {}) == (None, "REf", {})
    found = ending(_ran(FOUND, "interrupted"), None, UNTIL, {})
    assert found == (FOUND, "REf", {"retry_at": FOUND})


def test_what_a_worker_called_ends_when_it_is_found_whatever_became_of_the_schedulers() -> None:
    handed = Flights([WORKER]).handed(_ran(None, "running", WORKER))
    assert handed == {"handed": True}
    run = _ran(UNTIL, "interrupted", WORKER)
    found = ending(run, _presence(is_orderly=False), UNTIL, handed)
    assert found == (UNTIL, "REf", {"handed": True, "retry_at": UNTIL})
    assert Flights([WORKER]).handed(_ran(None, "running")) == {}


def test_only_the_end_of_the_run_in_flight_ends_it() -> None:
    flights = Flights(())
    flights["t"] = Busy(2, UNTIL, is_told=True, is_handed=False)
    flights.end(_ran(FOUND, "succeeded"))
    assert list(flights) == ["t"]
    flights["t"] = Busy(1, UNTIL, is_told=True, is_handed=False)
    flights.end(_ran(FOUND, "succeeded"))
    flights.end(_ran(FOUND, "succeeded"))
    assert list(flights) == []


def test_a_stop_neither_waits_for_nor_ends_what_workers_call() -> None:
    flights = Flights(())
    flights["own"] = Busy(1, FOUND, is_told=False, is_handed=False)
    flights["handed"] = Busy(2, UNTIL, is_told=False, is_handed=True)
    assert flights.untold_until() == FOUND
    flights.left()
    assert list(flights) == ["handed"]
    assert flights.untold_until() is None


FIRST, SECOND = NOON, NOON + 10 * MINUTE


@pytest.mark.parametrize(
    ("instance", "started_at", "number"),
    [
        # A worker comes and goes beside the schedulers: the one that lived then had started it.
        (WORKER, FIRST - MINUTE, -1),
        (WORKER, FIRST, 0),
        (WORKER, SECOND - MINUTE, 0),
        (WORKER, SECOND, 1),
        (WORKER, SECOND + MINUTE, 1),
        # A scheduler has started what it calls, whenever its clock says that was.
        (DEAD, SECOND + MINUTE, 0),
        (LIVING, FIRST, 1),
        (UUID(int=7), FIRST, -1),
    ],
)
def test_which_time_with_a_scheduler_started_a_run(
    instance: UUID, started_at: datetime, number: int
) -> None:
    lives = [Life(DEAD, FIRST, FIRST + MINUTE, is_orderly=True), Life(LIVING, SECOND, None)]
    sources = Sources(presences(lives), (), (), (), {}, {WORKER})
    history = History(sources, since=None, until=UNTIL)
    run = Ran(1, "t", started_at, UNTIL, "succeeded", "due", instance)
    assert history._number_at(run) == number


def test_an_absence_to_the_end_of_time_has_no_return() -> None:
    assert Absence("people", datetime.max.replace(tzinfo=UTC)).ready_after(NOON) is None
    assert Absence("people", NOON).ready_after(NOON) == NOON + MINUTE
