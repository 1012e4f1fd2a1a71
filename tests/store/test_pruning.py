"""Retention: what is forgotten, what never is, and how it keeps up with what is written."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from django_declarative_cron.core.events import TaskRunStarted
from django_declarative_cron.core.options import Options
from django_declarative_cron.models import RegistrationSet, ScheduledTask, SchedulerState, TaskRun
from django_declarative_cron.runtime import housekeeping
from django_declarative_cron.runtime.housekeeping import EVERY, LONGEST_WAIT, Housekeeping
from django_declarative_cron.store import pruning
from django_declarative_cron.store.guard import Member
from django_declarative_cron.testing import ManualClock, Simulation

from .conftest import Deployment

NOW = datetime(2024, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that stands still."""
    return ManualClock(NOW)


@pytest.fixture
def member(db: None) -> Member:
    SchedulerState.objects.create(deployment="default")
    SchedulerState.objects.create(deployment="other")
    return Deployment(0).member


def _runs(name: str, outcomes: str, *, age: int, deployment: str = "default") -> list[int]:
    """Make runs, oldest first: s(ucceeded), f(ailed), t(imed out), m(issed), r(unning)."""
    words = {"s": "succeeded", "f": "failed", "t": "timed_out", "m": "missed", "r": "running"}
    scheduler = SchedulerState.objects.get(deployment=deployment)
    made = []
    for number, letter in enumerate(outcomes):
        at = NOW - age * DAY + number * timedelta(minutes=1)
        run = TaskRun.objects.create(
            scheduler=scheduler,
            task_name=name,
            scheduled_for=at,
            finished_at=None if letter == "r" else at,
            outcome=words[letter],
            reason="due",
            running_slot=name if letter == "r" else None,
        )
        made.append(run.pk)
    return made


def _left() -> set[int]:
    return set(TaskRun.objects.values_list("pk", flat=True))


def test_the_old_go_and_the_last_success_and_failure_stay(member: Member) -> None:
    old = _runs("t", "tsfstfmm", age=100)
    young = _runs("t", "m", age=1)
    for _ in range(2):
        assert pruning.prune_old(member, NOW - 90 * DAY) == 0
        assert _left() == {old[3], old[4], old[5], *young}


def test_a_running_one_and_other_deployments_are_left_alone(member: Member) -> None:
    mine = _runs("t", "r", age=100)
    other = _runs("t", "mmm", age=100, deployment="other")
    assert pruning.prune_old(member, NOW) == 0
    assert pruning.prune_surplus(member, "t", 0) == 0
    assert _left() == {*mine, *other}


@pytest.mark.requirement("003 Resource Limits/3")
def test_beyond_the_newest_ones_the_rest_goes(member: Member) -> None:
    runs = _runs("t", "f" + "s" * 9, age=1)
    unrelated = _runs("u", "sss", age=1)
    assert pruning.prune_surplus(member, "t", 4) == 5
    assert _left() == {runs[0], *runs[-4:], *unrelated}
    assert pruning.prune_surplus(member, "t", 4) == 0


def test_p69_a_batch_is_a_thousand_rows_at_most() -> None:
    assert pruning.BATCH <= 1000


def test_batches_are_bounded_and_go_on_until_all_is_done(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 10)
    _runs("t", "m" * 25 + "s", age=100)
    place, left = 0, []
    for _ in range(3):
        place = pruning.prune_old(member, NOW - 90 * DAY, after=place)
        left.append(len(_left()))
    assert (left, place) == ([16, 6, 1], 0)


def test_many_that_are_kept_hide_none_that_goes(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 4)
    kept = {run for name in "abcdef" for run in _runs(name, "s", age=100)}
    _runs("g", "mmm", age=99)
    keeping = Housekeeping(Options(HISTORY_MAX_AGE=90 * DAY), ManualClock(NOW))
    for _ in range(3):
        keeping.prune(member, NOW)
    assert _left() == kept


def test_a_leader_looks_for_surplus_at_every_so_manieth_run(member: Member) -> None:
    _runs("t", "s" * 8, age=1)
    keeping = Housekeeping(Options(HISTORY_MAX_RUNS=3), ManualClock(NOW))
    started = TaskRunStarted(
        at=NOW, task_name="t", scheduled_time=NOW, actual_time=NOW, run_count=EVERY + 1
    )
    keeping.note([started])
    keeping.prune(member, NOW)
    assert len(_left()) == 8
    keeping.note([TaskRunStarted(at=NOW, task_name="t", scheduled_time=NOW, actual_time=NOW)])
    keeping.prune(member, NOW)
    assert len(_left()) == 3


def test_where_no_moment_is_quiet_it_takes_one_every_ten_seconds(member: Member) -> None:
    keeping = Housekeeping(Options(HISTORY_MAX_AGE=90 * DAY), ManualClock(NOW))
    _runs("t", "mm", age=100)
    for number in range(10):
        keeping.work(member, NOW + number * SECOND, NOW + (number + 1) * SECOND)
        assert len(_left()) == 2
    keeping.work(member, NOW + LONGEST_WAIT, NOW + LONGEST_WAIT + SECOND)
    assert _left() == set()


def test_ages_are_looked_at_every_ten_minutes(member: Member) -> None:
    keeping = Housekeeping(Options(HISTORY_MAX_AGE=90 * DAY), ManualClock(NOW))
    _runs("t", "mm", age=100)
    keeping.prune(member, NOW)
    assert _left() == set()
    keeping.prune(member, NOW)
    _runs("t", "mm", age=100)
    keeping.prune(member, NOW + timedelta(minutes=9))
    assert len(_left()) == 2
    keeping.prune(member, NOW + timedelta(minutes=10))
    assert _left() == set()


def test_by_a_clock_that_is_years_ahead_nothing_is_forgotten(member: Member) -> None:
    there = ManualClock(NOW).database_time()
    keeping = Housekeeping(Options(HISTORY_MAX_AGE=90 * DAY), ManualClock(NOW))
    _runs("t", "mm", age=100)
    young = _runs("t", "mm", age=1)
    for days in (4000, 4001):
        keeping.prune(replace(member, database_time=there), NOW + days * DAY)
        assert _left() == {*young}


def test_of_a_deployment_that_is_not_there_nothing_is_old(member: Member) -> None:
    assert pruning.behind(replace(member, deployment="nobody's"), NOW) == NOW


def _started(name: str) -> TaskRunStarted:
    return TaskRunStarted(
        at=NOW, task_name=name, scheduled_time=NOW, actual_time=NOW, run_count=EVERY
    )


def test_what_waits_is_no_more_than_there_are_tasks(member: Member) -> None:
    keeping = Housekeeping(Options(), ManualClock(NOW))
    for _ in range(50):
        keeping.note([_started("t"), _started("u")])
    assert not keeping.prune(member, NOW)


def test_where_names_wait_all_the_time_the_old_goes_too(member: Member) -> None:
    options = Options(HISTORY_MAX_RUNS=3, HISTORY_MAX_AGE=90 * DAY)
    keeping = Housekeeping(options, ManualClock(NOW))
    _runs("t", "m" * 5, age=1)
    _runs("u", "m", age=100)
    keeping.note([_started("t")])
    keeping.prune(member, NOW)
    assert len(_left()) == 4
    keeping.note([_started("t")])
    keeping.prune(member, NOW)
    assert len(_left()) == 3


def test_where_history_begins_is_remembered(member: Member) -> None:
    _runs("t", "sfs", age=100)
    state = SchedulerState.objects.get(deployment="default")
    assert state.history_from is None
    pruning.prune_old(member, NOW - 90 * DAY)
    state.refresh_from_db()
    assert state.history_from == NOW - 100 * DAY
    assert SchedulerState.objects.get(deployment="other").history_from is None


def test_of_a_task_with_too_many_runs_it_begins_later(member: Member) -> None:
    state = SchedulerState.objects.get(deployment="default")
    task = _task(state, "t")
    _runs("t", "s" * 9, age=1)
    _runs("gone", "s" * 9, age=2)
    pruning.prune_surplus(member, "t", 4)
    task.refresh_from_db()
    state.refresh_from_db()
    assert (task.history_from, state.history_from) == (NOW - DAY + timedelta(minutes=4), None)
    pruning.prune_surplus(member, "gone", 4)
    state.refresh_from_db()
    assert state.history_from == NOW - 2 * DAY + timedelta(minutes=4)


def _task(state: SchedulerState, name: str) -> ScheduledTask:
    return ScheduledTask.objects.create(
        scheduler=state,
        scheduler_identifier=state.identifier,
        name=name,
        cron="0 * * * *",
        timezone="UTC",
        retry_delay=timedelta(0),
        callback="shop.tasks.anything",
        digest="",
        registered_at=NOW - 100 * DAY,
    )


def test_registration_sets_go_that_nothing_left_was_started_under(member: Member) -> None:
    state = SchedulerState.objects.get(deployment="default")
    for generation, age in enumerate((120, 110, 95, 1), start=1):
        RegistrationSet.objects.create(
            scheduler=state, generation=generation, registered_at=NOW - age * DAY
        )
    _runs("t", "ss", age=100)
    pruning.prune_old(member, NOW - 90 * DAY)
    left = RegistrationSet.objects.order_by("generation").values_list("generation", flat=True)
    assert list(left) == [2, 3, 4]


# --- it keeps up, and no start waits for it ---

TASKS, KEPT, BATCH = 12, 5, 20


class Forgetful(Simulation):
    """A simulation that keeps little."""

    def _options(self) -> Options:
        return replace(super()._options(), HISTORY_MAX_RUNS=KEPT)


@pytest.mark.django_db
def test_where_it_is_never_quiet_the_history_does_not_grow_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pruning, "BATCH", BATCH)
    monkeypatch.setattr(housekeeping, "EVERY", KEPT)
    sim = Forgetful(NOW)
    entry = {"cron": "@every 1s", "callback": sim.job(), "timezone": "UTC"}
    sim.initialize([{"name": f"t{n}", **entry} for n in range(TASKS)])
    sim.advance_to(NOW + 30 * SECOND)
    assert sim.task("t0").run_count >= 29
    assert TaskRun.objects.count() <= TASKS * (KEPT + KEPT) + BATCH


def _passes(clock: ManualClock, seconds: float) -> None:
    clock.wait(threading.Event(), seconds)


def _slow(monkeypatch: pytest.MonkeyPatch, clock: ManualClock, seconds: float) -> list[str]:
    """Let each look for surplus take so long, and find a batch; give the names looked at."""
    looked = list[str]()

    def prune(member: object, name: str, keep: int) -> int:
        _passes(clock, seconds)
        looked.append(name)
        return pruning.BATCH

    monkeypatch.setattr(pruning, "prune_surplus", prune)
    return looked


def test_a_loop_comes_back_when_the_rest_is_over_and_only_where_more_waits(
    member: Member, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping, looked = Housekeeping(Options(HISTORY_MAX_RUNS=3), clock), _slow(monkeypatch, clock, 0)
    keeping.prune(member, NOW)
    keeping.work(member, NOW, None)
    assert keeping.longest_sleep(SECOND) == 1.0
    looked = _slow(monkeypatch, clock, 0.125)
    keeping.note([_started("t")])
    keeping.work(member, NOW, None)
    assert (looked, keeping.longest_sleep(SECOND), keeping.longest_sleep(SECOND)) == (
        ["t"],
        0.5,
        1.0,
    )


def test_pruning_takes_a_fifth_of_the_time_whether_it_succeeds_or_not(
    member: Member, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping, looked = Housekeeping(Options(HISTORY_MAX_RUNS=3), clock), list[str]()

    def fail(member: object, name: str, keep: int) -> int:
        looked.append(name)
        _passes(clock, 0.5)
        raise ValueError("no")

    monkeypatch.setattr(pruning, "prune_surplus", fail)
    keeping.note([_started("t"), _started("u")])
    with pytest.raises(ValueError, match=r"^no$"):
        keeping.work(member, NOW, NOW)
    _passes(clock, 1.875)
    keeping.work(member, NOW, NOW)
    assert looked == ["t"]
    _passes(clock, 0.125)
    with pytest.raises(ValueError, match=r"^no$"):
        keeping.work(member, NOW, NOW)
    assert looked == ["t", "u"]


def test_a_piece_of_work_ends_with_a_batch(
    member: Member, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping, looked = Housekeeping(Options(HISTORY_MAX_RUNS=3), clock), _slow(monkeypatch, clock, 0)
    keeping.note([_started("t"), _started("u")])
    assert keeping.prune(member, NOW)
    assert looked == ["t"]
    keeping.prune(member, NOW)
    keeping.prune(member, NOW)
    assert looked == ["t", "u"]


@pytest.mark.parametrize(("kept", "every"), [(3, EVERY), (1000, 100)])
def test_where_much_is_kept_surplus_is_looked_for_less_often(
    clock: ManualClock, kept: int, every: int
) -> None:
    assert Housekeeping(Options(HISTORY_MAX_RUNS=kept), clock)._every == every


def test_ages_begin_to_be_looked_at_in_a_quiet_moment_and_go_on_in_any(
    member: Member, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 2)
    _runs("t", "mmmmm", age=100)
    keeping = Housekeeping(Options(HISTORY_MAX_AGE=90 * DAY), clock)
    left = []
    for far in (SECOND, 2 * SECOND, SECOND, SECOND):
        keeping.work(member, NOW, NOW + far)
        left.append(len(_left()))
    assert left == [5, 3, 1, 0]
