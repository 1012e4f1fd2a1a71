"""Which end of a run the theory is told, and by which scheduler it was started; pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from django_declarative_cron.store.trace_builder import History, Sources, ending
from django_declarative_cron.store.trace_values import (
    Busy,
    Flights,
    Life,
    Presence,
    Ran,
    presences,
)

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
