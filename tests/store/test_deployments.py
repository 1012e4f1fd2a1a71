"""Two deployments in one database, with tasks of the same names: neither touches the other's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test.utils import override_settings

from django_declarative_cron import conf
from django_declarative_cron.core.declarations.declaration import Declaration, digest_of_set
from django_declarative_cron.core.http_api import Right
from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from django_declarative_cron.store import (
    access_tokens,
    claims,
    external_jobs,
    guard,
    liveness,
    manual_runs,
    operator_actions,
    outbox,
    overview,
    posted_tasks,
    pruning,
    queries,
    reconcile,
    recovery,
    registration_sets,
    results,
    status,
    trace_reading,
)
from django_declarative_cron.store.guard import LONG_AGO
from django_declarative_cron.store.liveness import Process
from django_declarative_cron.store.results import Result

from .doubled import (
    DAY,
    FIVE_MINUTES,
    FOR_EVER,
    HOUR,
    OPTIONS,
    WEB,
    Stage,
    double,
    rows_of,
    staged,
)


@pytest.fixture(scope="module")
def db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Open the database for the whole module; by its name pytest-django sees that it is wanted."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="module")
def stage(db: None) -> Iterator[Stage]:
    with override_settings(DECLARATIVE_CRON=OPTIONS), transaction.atomic():
        yield staged()
        transaction.set_rollback(True)


# --- what is done ----------------------------------------------------------------------------

DEEDS: dict[str, Callable[[Stage], Any]] = {}


def deed(act: Callable[[Stage], Any]) -> Callable[[Stage], Any]:
    DEEDS[act.__name__.strip("_").replace("_", " ")] = act
    return act


@deed
def _claim(stage: Stage) -> Any:
    mine = ScheduledTask.objects.filter(scheduler__deployment="default")
    for number, name in enumerate(mine.order_by("name").values_list("name", flat=True)):
        mine.filter(name=name).update(wake_at=stage.now - number * FIVE_MINUTES)
    claimed = claims.claim_due(stage.member, stage.by_name, stage.now, reaping=True)
    starts = [(each.task_name, each.started.attempt) for each in claimed.claims]
    return sorted(starts), claimed.considered, claimed.more, claimed.strangers


@deed
def _take_over(stage: Stage) -> Any:
    """Claim as another instance, with the leader dead."""
    liveness.give_up(stage.member)
    return claims.claim_due(stage.joining, stage.by_name, stage.now, reaping=True).role


@deed
def _record(stage: Stage) -> Any:
    run = stage.run_of("queue")
    ended = Result(run.pk, "queue", stage.now, succeeded=False, error="no")
    recorded = results.record(stage.member, [ended], stage.now)
    return [type(each).__name__ for each in recorded.events], recorded.held


def _declare(*names: str, cron: str = "*/5 * * * *") -> list[Declaration]:
    return conf.declarations(
        [{"name": name, "cron": cron, "callback": "os.getpid", "timezone": "UTC"} for name in names]
    )


@deed
def _reconcile(stage: Stage, release: str = "") -> Any:
    """Bring another set: tasks are new, changed, gone and as before."""
    stage.sim.clock.advance(datetime(2024, 1, 1, 10, 15, tzinfo=UTC))
    declared = [
        *_declare("new", "new-2", "new-3"),
        *_declare("failing", cron="7 7 * * *"),
        *(each for each in stage.declared if each.name in ("plain", "queue")),
    ]
    member = replace(stage.joining, digest=digest_of_set(declared))
    found = reconcile.reconcile(
        member, Process("here", 2, release), declared, stage.now, reconcile.Terms.UNLESS_OLDER
    )
    todo = found.plan
    return [len(todo.new), len(todo.orphaned)], found.role, found.generation


@deed
def _bring_another_release(stage: Stage) -> Any:
    SchedulerState.objects.filter(deployment="default").update(release="autumn")
    return _reconcile(stage, release="spring")


@deed
def _restart(stage: Stage) -> Any:
    """Bring the same set as another instance, to which nothing is left to do."""
    TaskRun.objects.filter(scheduler__deployment="default").update(running_slot=None)
    tasks = ScheduledTask.objects.filter(scheduler__deployment="default")
    tasks.update(running_run=None)
    SchedulerInstance.objects.filter(pk=stage.dead).delete()
    with guard.locked(stage.joining) as held:
        assert held is not None
        return reconcile.survey(held, stage.declared, stage.now)[1]


@deed
def _free(stage: Stage) -> Any:
    with guard.locked(stage.member) as held:
        assert held is not None
        return recovery.free_of_lost_runs(held, stage.now)


@deed
def _is_orphaned(stage: Stage) -> Any:
    mine = SchedulerInstance.objects.filter(scheduler__deployment="default")
    mine.update(heartbeat_at=LONG_AGO)
    member = replace(stage.joining, digest="theirs")
    return [
        recovery.has_living_holder(member, digest, None, None, stage.now)
        for digest in (stage.member.digest, "theirs")
    ]


@deed
def _expire(stage: Stage) -> Any:
    _fetch(stage)
    TaskRun.objects.filter(reservation__isnull=False).update(reserved_until=stage.now - HOUR)
    return _claim(stage)


def _fetch(stage: Stage) -> tuple[TaskRun, str, external_jobs.Claimant]:
    """Reserve the one job that waits; return its run, its name and who has it."""
    [run] = external_jobs.fetch(["default"], 10, "worker", FIVE_MINUTES, stage.time)
    job = str(outbox.name_of(run.pk, run.scheduled_for))
    return run, job, external_jobs.Claimant([run.reservation], "worker")


@deed
def _end_a_job(stage: Stage) -> Any:
    run, job, worker = _fetch(stage)
    run, _ = external_jobs.end(job, worker, external_jobs.Report(), stage.time)
    return run.task_name, run.outcome


@deed
def _extend_a_job(stage: Stage) -> Any:
    _, job, worker = _fetch(stage)
    return len(external_jobs.extend([job], worker, HOUR, stage.time))


@deed
def _deliver(stage: Stage) -> Any:
    taken = outbox.take(stage.member, HOUR, 100)
    mine = [event for events in taken for event in events]
    outbox.give_back(stage.member, mine[:2], [(mine[2], "no", HOUR)])
    return [len(events) for events in taken]


@deed
def _tidy(stage: Stage) -> Any:
    told = outbox.tidy(stage.member, FIVE_MINUTES, 10)
    return [type(each).__name__ for each in told], outbox.requeue("default", "default")


@deed
def _revoke(stage: Stage) -> Any:
    names = [token.name for token in access_tokens.listed()]
    return names, [access_tokens.revoke(each, stage.now) for each in ("token", "their token")]


@deed
def _create_tokens(stage: Stage) -> Any:
    access_tokens.create("their token", [Right.READ], stage.now)
    with suppress(access_tokens.TakenError):
        access_tokens.create("token", [Right.READ], stage.now)
        raise AssertionError


@deed
def _prune(stage: Stage) -> Any:
    TaskRun.objects.filter(scheduler__deployment="default").update(running_slot=None)
    return [
        pruning.prune_surplus(stage.member, "plain", 1),
        pruning.prune_old(stage.member, stage.now - timedelta(minutes=4)),
        pruning.behind(replace(stage.member, database_time=stage.time), stage.now),
    ]


@deed
def _forget_parts(stage: Stage) -> Any:
    registration_sets.forget_parts(stage.member)


@deed
def _leave(stage: Stage) -> Any:
    liveness.stop_requested(stage.member, stage.now)
    liveness.leave(stage.member, stage.now)


@deed
def _watch(stage: Stage) -> Any:
    liveness.heartbeat(stage.member)
    member = replace(stage.member, lease=FIVE_MINUTES, dead_after=None, renew=FIVE_MINUTES / 5)
    return guard.silence_limit(member, (stage.now - DAY, stage.now - HOUR), None, stage.now)


@deed
def _peek(stage: Stage) -> Any:
    seen = guard.peek(stage.member)
    assert seen is not None
    return replace(seen, database_now=stage.now)


@deed
def _read_trace(stage: Stage) -> Any:
    told = trace_reading.read(
        "default", "default", lease=FOR_EVER, until=stage.now, database_time=stage.time
    )
    assert told is not None
    return list(told.records()), told.set_aside, told.begins


@deed
def _explain(stage: Stage) -> Any:
    tasks = ScheduledTask.objects.filter(scheduler__deployment="default")
    at = stage.now - timedelta(minutes=1)
    return [
        queries.explain(task, stage.now, instant, is_attended=True)
        for task in tasks.order_by("name")
        for instant in (None, at)
    ]


@deed
def _overview(stage: Stage) -> Any:
    deployment = ("default", "default")
    tasks = ScheduledTask.objects.filter(scheduler__deployment="default").order_by("name")
    oldest = {task.name: 0 for task in tasks}
    days = {stage.now.date(): (stage.now - DAY, stage.now + DAY)}
    counts = overview.counts_of(*deployment, stage.now, stage.time, 100, ["new", "plain"])
    assert counts is not None
    scheduler = tasks[0].scheduler_id
    return [
        counts.by_status, counts.by_outcome, counts.gone, [t.name for t in counts.tasks],
        counts.events, counts.lead.state.deployment, len(counts.lead.present),
        overview.failing_tasks(*deployment),
        overview.overdue_since(*deployment, stage.now + DAY),
        overview.errors_of(*deployment, ["failing"]),
        overview.paces(*deployment),
        overview.ended_by_day("default", days),
        overview.recent_runs(tasks, oldest, stage.now),
        overview.day_of(scheduler, ["plain"], stage.now - DAY, stage.now, stage.now),
        [overview.coverage(t, schedule, stage.now) for t in tasks
         if (schedule := queries.read_schedule(t)[0])],
        [overview.days_of(t, stage.now, UTC) for t in tasks],
        list(tasks.annotate(oldest=overview.oldest_recent()).values_list("oldest", flat=True)),
        [t.name for t in overview.last_outcome(tasks, "failed")],
        [t.name for t in tasks.filter(overview.failed_lately("default", stage.now))],
        sorted(t.name for t in status.overdue_tasks(*deployment, stage.now + DAY)),
    ]  # fmt: skip


@deed
def _questions(stage: Stage) -> Any:
    return [
        reconcile.plan_for("default", "default", stage.declared).is_empty,
        reconcile.active_digest("default", "default") == stage.member.digest,
        reconcile.mismatch(stage.member, stage.declared),
        [reconcile.is_whole(stage.member, each) for each in (5, 6)],
        [run.error for run in queries.newest_runs("default", "default", "failing", 10)],
        registration_sets.removal_of("default", "default", "new-2"),
        registration_sets.removal_of("default", "default", "plain"),
        manual_runs.occurrences_done("plain", stage.now - DAY, stage.now),
        manual_runs.occurrences_done("new-2", stage.now - DAY, stage.now),
        sorted(task.name for task in posted_tasks.tasks()),
        [claim.task_name for claim in recovery.unanswered(stage.member, (), stage.by_name)],
    ]


@deed
def _start_now(stage: Stage) -> Any:
    started = manual_runs.start_now(
        stage.joining, Process("here", 2), stage.by_name["plain"], stage.act
    )
    with pytest.raises(manual_runs.AlreadyRunningError):
        manual_runs.start_now(stage.joining, Process("here", 3), stage.by_name["lost"], stage.act)
    return started.claim.task_name


@deed
def _backfill(stage: Stage) -> Any:
    manual_runs.audit_backfill("failing", stage.act)
    started = manual_runs.start_occurrence(
        stage.joining, Process("here", 2), stage.by_name["failing"], stage.now - DAY, stage.now,
        repeat=False,
    )  # fmt: skip
    return started.claim.started.attempt


@deed
def _cancel_queued(stage: Stage) -> Any:
    behind = TaskRun.objects.get(
        scheduler__deployment="default", task_name="queue", outcome="waiting"
    )
    each = [behind, TaskRun.objects.get(pk=stage.waiting.pk), stage.run_of("queue")]
    return [manual_runs.cancel(run, stage.act, stage.time) for run in each]


@deed
def _withdraw(stage: Stage) -> Any:
    return posted_tasks.remove("web", stage.act)


@deed
def _switch(stage: Stage) -> Any:
    return [posted_tasks.switch("web", each, stage.act).enabled for each in (False, True)]


@deed
def _post(stage: Stage) -> Any:
    declaration, _ = conf.posted({**WEB, "cron": "7 * * * *"})
    fresh, _ = conf.posted({**WEB, "name": "new"})
    return [posted_tasks.post(each, stage.now)[1] for each in (declaration, fresh)]


for _act in (
    operator_actions.pause,
    operator_actions.resume,
    operator_actions.skip_next,
    operator_actions.unskip,
    operator_actions.request_run,
    operator_actions.retry_now,
    operator_actions.clear_retry,
):
    DEEDS[_act.__name__] = lambda stage, act=_act: act([*stage.by_name, "new"], stage.act)


def _done(stage: Stage, act: Callable[[Stage], Any], *, doubled: bool) -> tuple[Any, ...]:
    before = stage.sim.clock.now()
    with transaction.atomic():
        if doubled:
            double()
        theirs = rows_of("other")
        answer = act(stage)
        mine, touched = rows_of("default"), rows_of("other") != theirs
        transaction.set_rollback(True)
    stage.sim.clock.leap(before)
    return answer, mine, touched


@pytest.mark.parametrize("name", DEEDS)
def test_a_deployment_is_as_if_it_were_alone(stage: Stage, name: str) -> None:
    answer, rows, _ = _done(stage, DEEDS[name], doubled=False)
    same_answer, same_rows, is_touched = _done(stage, DEEDS[name], doubled=True)
    assert same_answer == answer
    assert same_rows == rows
    assert not is_touched
