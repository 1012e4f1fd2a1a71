"""A start in a person's own process, as the store and the core see it, on a virtual clock."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from django_declarative_cron import conf
from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskOverride,
    TaskRun,
)
from django_declarative_cron.store import liveness, manual_runs, operator_actions, results
from django_declarative_cron.store.guard import Member
from django_declarative_cron.store.liveness import Process
from django_declarative_cron.store.manual_runs import AlreadyRunningError, CommittedStart
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.store.results import Result
from django_declarative_cron.store.rows import NotRegisteredError, UnreadableRowError
from django_declarative_cron.testing import Simulation

HOURLY = "0 * * * *"
DELAY = timedelta(minutes=5)


class Person:
    """Somebody with a process of their own beside the scheduler."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.member = Member(
            using="default",
            deployment="default",
            instance=uuid.uuid4(),
            digest="",
            lease=timedelta(seconds=15),
            renew=timedelta(seconds=5),
            database_time=sim.clock.database_time(),
        )

    @property
    def act(self) -> Act:
        return Act(author="Ada", at=self.sim.now, note="to see")

    def start(self, name: str = "t") -> CommittedStart:
        [declaration] = conf.declarations([(name, HOURLY, print, DELAY)])
        return manual_runs.start_now(self.member, Process("desk", 1), declaration, self.act)

    def end(self, start: CommittedStart, *, succeeded: bool = True) -> None:
        error = "" if succeeded else "ValueError: no"
        result = Result(
            start.claim.run,
            start.claim.started.task_name,
            self.sim.now,
            succeeded=succeeded,
            error=error,
        )
        results.record(self.member, [result], self.sim.now)
        liveness.leave(self.member, self.sim.now)


def _utc(hour: int, minute: int = 0, second: int = 0) -> datetime:
    return datetime(2024, 1, 1, hour, minute, second, tzinfo=UTC)


def _kinds(start: CommittedStart) -> list[str]:
    return [type(event).__name__ for event in start.events]


@pytest.fixture
def sim(db: None) -> Simulation:
    return Simulation(start="2024-01-01T10:00:30Z")


@pytest.fixture
def person(sim: Simulation) -> Person:
    """Somebody beside a scheduler with one hourly task, at half a minute past ten."""
    sim.initialize([("t", HOURLY, sim.job(), DELAY)])
    sim.advance_to("2024-01-01T10:10:00Z")
    return Person(sim)


def test_it_is_recorded_like_every_other_run(person: Person) -> None:
    before = person.sim.task("t").run_count
    start = person.start()
    run = TaskRun.objects.get(pk=start.claim.run)
    assert (run.outcome, run.reason, run.attempt) == ("running", "manual", 1)
    assert (run.scheduled_for, run.started_at) == (_utc(10, 10), _utc(10, 10))
    assert run.instance_id == person.member.instance
    task = person.sim.task("t")
    assert (task.running_run, task.last_attempt_at) == (run.pk, _utc(10, 10))
    assert (task.run_count, task.wake_at) == (before + 1, None)
    person.sim.clock.advance(_utc(10, 12))
    person.end(start)
    run.refresh_from_db()
    task.refresh_from_db()
    assert (run.outcome, run.finished_at) == ("succeeded", _utc(10, 12))
    assert (task.last_success_at, task.running_run) == (_utc(10, 12), None)
    assert (task.next_run_at, task.wake_at) == (_utc(11), _utc(11))


def _two_by_hand(sim: Simulation, policy: str) -> tuple[CommittedStart, TaskRun]:
    """Start a long task by hand while a scheduled run of it is in progress."""
    job = sim.job(duration=timedelta(minutes=50))
    sim.initialize([{"name": "t", "cron": HOURLY, "callback": job, "overlap_policy": policy}])
    sim.advance_to("2024-01-01T11:10:00Z")
    start = Person(sim).start()
    return start, TaskRun.objects.exclude(pk=start.claim.run).latest("pk")


def test_under_cancel_previous_the_run_in_progress_is_asked_to_end(sim: Simulation) -> None:
    start, previous = _two_by_hand(sim, "cancel_previous")
    assert previous.cancel_requested_at == sim.now
    assert _kinds(start) == ["TaskRunRequested", "TaskRunCancelRequested", "TaskRunStarted"]
    assert sim.task("t").running_run == start.claim.run
    sim.advance_to("2024-01-01T11:55:00Z")
    previous.refresh_from_db()
    assert previous.outcome == "cancelled"


def test_under_allow_the_run_in_progress_goes_on(sim: Simulation) -> None:
    start, previous = _two_by_hand(sim, "allow")
    assert previous.cancel_requested_at is None
    assert _kinds(start) == ["TaskRunRequested", "TaskRunStarted"]


def test_a_backfilled_run_cancels_nothing(sim: Simulation) -> None:
    job = sim.job(duration=timedelta(minutes=50))
    task = {"name": "t", "cron": HOURLY, "callback": job, "overlap_policy": "cancel_previous"}
    sim.initialize([task])
    sim.advance_to("2024-01-01T11:10:00Z")
    [declaration] = conf.declarations([("t", HOURLY, print, DELAY)])
    start = manual_runs.start_occurrence(
        Person(sim).member, Process("desk", 1), declaration, _utc(9), sim.now, repeat=False
    )
    assert _kinds(start) == ["TaskRunStarted"]
    assert not TaskRun.objects.filter(cancel_requested_at__isnull=False).exists()


def test_the_instance_comes_lives_and_leaves_without_leading(person: Person) -> None:
    leader = SchedulerState.objects.get().leader_id
    start = person.start()
    mine = SchedulerInstance.objects.get(id=person.member.instance)
    assert (mine.host, mine.initialized_at, mine.stopped_at) == ("desk", None, None)
    person.end(start)
    mine.refresh_from_db()
    assert mine.stopped_at == person.sim.now
    assert SchedulerState.objects.get().leader_id == leader


def test_who_asked_is_in_the_audit(person: Person) -> None:
    start = person.start()
    assert _kinds(start) == ["TaskRunRequested", "TaskRunStarted"]
    act = TaskOverride.objects.get()
    assert (act.kind, act.author, act.note) == ("run", "Ada", "to see")
    assert act.ended_at == person.sim.now


def test_a_request_that_was_open_is_answered(person: Person) -> None:
    operator_actions.request_run(["t"], person.act)
    start = person.start()
    assert not TaskOverride.objects.filter(ended_at=None).exists()
    person.end(start)
    person.sim.poll()
    assert len(person.sim.runs("t")) == len(person.sim.starts("t")) == 2


def test_what_falls_due_meanwhile_follows(person: Person) -> None:
    start = person.start()
    person.sim.advance_to("2024-01-01T11:30:00Z")
    assert person.sim.starts("t")[-1] == _utc(10, 10)
    person.end(start)
    person.sim.poll()
    assert person.sim.starts("t")[-1] == _utc(11, 30)
    assert person.sim.runs("t")[-1].reason == "due"


def test_a_failure_sets_the_retry(person: Person) -> None:
    person.end(person.start(), succeeded=False)
    task = person.sim.task("t")
    assert task.pending_retry_until == _utc(10, 15)
    person.sim.advance_to("2024-01-01T10:15:00Z")
    assert person.sim.runs("t")[-1].reason == "retry"


def test_a_pending_retry_is_preempted(person: Person) -> None:
    person.end(person.start(), succeeded=False)
    person.sim.clock.advance(_utc(10, 12))
    start = person.start()
    assert _kinds(start) == ["TaskRunRequested", "TaskRetryPreempted", "TaskRunStarted"]
    assert person.sim.task("t").pending_retry_until is None


def test_a_paused_task_runs_and_stays_paused(person: Person) -> None:
    operator_actions.pause(["t"], person.act)
    person.end(person.start())
    task = person.sim.task("t")
    assert (task.last_success_at, task.next_run_at) == (_utc(10, 10), None)
    assert task.paused_since is not None


def test_a_boot_run_that_was_owed_is_accounted_for(sim: Simulation) -> None:
    sim.initialize([("t", HOURLY, sim.job(), DELAY)])
    ScheduledTask.objects.update(boot_at=_utc(10), run_count=0)
    start = Person(sim).start()
    assert _kinds(start) == ["TaskRunRequested", "TaskSkipped", "TaskRunStarted"]
    skipped = TaskRun.objects.get(outcome="skipped")
    assert (skipped.reason, skipped.scheduled_for) == ("coalesced", _utc(10))
    assert sim.task("t").boot_at is None


def test_an_unknown_task_leaves_no_trace(person: Person) -> None:
    with pytest.raises(NotRegisteredError):
        person.start("other")
    assert not SchedulerInstance.objects.filter(id=person.member.instance).exists()


def test_a_deployment_that_never_was_is_not_made(sim: Simulation) -> None:
    with pytest.raises(NotRegisteredError):
        Person(sim).start()
    assert not SchedulerState.objects.exists()


def test_a_damaged_row_is_refused(person: Person) -> None:
    ScheduledTask.objects.update(cron="nonsense")
    with pytest.raises(UnreadableRowError, match="nonsense"):
        person.start()
    assert not TaskOverride.objects.exists()


def test_two_people_cannot_run_one_task(person: Person) -> None:
    first = person.start()
    with pytest.raises(AlreadyRunningError) as refused:
        Person(person.sim).start()
    assert refused.value.run.pk == first.claim.run
    assert str(refused.value.run.instance) == "desk:1"


def test_a_run_of_a_task_that_came_back_still_blocks(person: Person) -> None:
    first = person.start()
    person.sim.initialize([])
    person.sim.initialize([("t", HOURLY, person.sim.job(), DELAY)])
    with pytest.raises(AlreadyRunningError):
        Person(person.sim).start()
    person.end(first)
    assert TaskRun.objects.get(pk=first.claim.run).outcome == "succeeded"


def test_while_it_lives_the_leader_leaves_it_alone(person: Person) -> None:
    start = person.start()
    for minute in range(11, 20):
        person.sim.clock.advance(_utc(10, minute))
        liveness.heartbeat(person.member)
        person.sim.poll()
    assert TaskRun.objects.get(pk=start.claim.run).outcome == "running"


def test_when_it_dies_the_run_is_interrupted_and_restarted(person: Person) -> None:
    start = person.start()
    liveness.give_up(person.member)
    person.sim.poll()
    assert TaskRun.objects.get(pk=start.claim.run).outcome == "interrupted"
    person.sim.poll()
    assert person.sim.runs("t")[-1].reason == "orphaned"
