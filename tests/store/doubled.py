"""A deployment in which much goes on, and another one beside it with tasks of the same names."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.apps import apps
from django.db import models

from django_declarative_cron import conf
from django_declarative_cron.core.declarations.declaration import Declaration
from django_declarative_cron.core.http_api import Right
from django_declarative_cron.models import (
    AccessToken,
    OutboxEvent,
    RegistrationPart,
    RegistrationSet,
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskOverride,
    TaskRun,
)
from django_declarative_cron.store import (
    access_tokens,
    operator_actions,
    posted_tasks,
)
from django_declarative_cron.store.guard import LONG_AGO, Member
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import Simulation

FIVE_MINUTES = timedelta(minutes=5)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
FOR_EVER = timedelta(days=100_000)
OPTIONS = {"EXTERNAL_WORKERS": True, "EVENT_SINK": {"url": "https://example.com/"}}
WEB = {"name": "web", "cron": "0 * * * *", "timezone": "UTC", "type": "theirs.web"}
EXTERNAL = {**WEB, "name": "external", "cron": "*/5 * * * *"}
"""Tasks that somebody registers over HTTP, for external workers."""


@dataclass
class Stage:
    """A deployment in which much goes on.

    Args:
        declared: its active set.
        dead: an instance that gave itself up, with a run.
        waiting: the run that waits for an external worker.
    """

    sim: Simulation
    member: Member
    declared: list[Declaration]
    dead: uuid.UUID
    waiting: TaskRun

    @property
    def now(self) -> datetime:
        return self.sim.now

    @property
    def act(self) -> Act:
        return Act(author="somebody", at=self.now)

    @property
    def by_name(self) -> dict[str, Declaration]:
        return {each.name: each for each in self.declared}

    @property
    def time(self) -> Any:
        return self.sim.clock.database_time()

    @property
    def joining(self) -> Member:
        """Another instance of the same set."""
        return replace(self.member, instance=uuid.uuid4())

    def run_of(self, name: str) -> TaskRun:
        return TaskRun.objects.get(scheduler__deployment="default", running_slot=name)


def _entries(sim: Simulation) -> list[dict[str, Any]]:
    often: dict[str, Any] = {"cron": "*/5 * * * *", "retry_delay": HOUR}
    long = {"callback": sim.job(duration=timedelta(minutes=58)), **often}
    return [
        {"name": "plain", "callback": sim.job(), **often},
        {"name": "failing", "callback": sim.job(["fail"]), **often},
        {"name": "queue", **long, "overlap_policy": "enqueue"},
        {"name": "lost", **long, "overlap_policy": "coalesce"},
        {"name": "paused", "callback": sim.job(), **often},
    ]


def staged() -> Stage:
    sim = Simulation("2024-01-01T10:01:30Z")
    entries = _entries(sim)
    sim.initialize(entries[:3])
    sim.initialize(entries)
    act = Act(author="somebody", at=sim.now)
    sim.advance_to("2024-01-01T10:06:00Z")
    operator_actions.pause(["paused"], act)
    for entry in (WEB, EXTERNAL):
        posted_tasks.post(conf.posted(entry)[0], sim.now)
    access_tokens.create("token", [Right.READ], sim.now)
    sim.advance_to("2024-01-01T10:11:00Z")
    operator_actions.skip_next(["plain"], act)
    scheduler: Any = sim[0].scheduler
    member = scheduler._engine.member
    dead = SchedulerInstance.objects.get()
    dead.pk, dead.heartbeat_at = uuid.uuid4(), LONG_AGO
    dead.save(force_insert=True)
    TaskRun.objects.filter(running_slot="lost").update(instance=dead)
    [refused] = OutboxEvent.objects.order_by("pk")[:1]
    OutboxEvent.objects.filter(pk=refused.pk).update(attempts=1, refused_since=sim.now - HOUR)
    for digest in ("of no set", "of their set"):
        RegistrationPart.objects.create(scheduler=dead.scheduler, digest=digest)
    declared = conf.declarations(entries)
    return Stage(sim, member, declared, dead.pk, TaskRun.objects.get(waits_in="default"))


def _copy(row: Any, **changes: Any) -> Any:
    if isinstance(row.pk, uuid.UUID):
        row.pk = uuid.uuid4()
    else:
        # The first task that a query finds is theirs, and the newest run.
        is_first = isinstance(row, SchedulerState | ScheduledTask | AccessToken)
        row.pk = -row.pk if is_first else None
    for field, value in changes.items():
        setattr(row, field, value)
    row.save(force_insert=True)
    return row.pk


def double() -> None:
    """Copy the deployment; the other has some more of everything, and other values."""
    theirs = SchedulerState.objects.get()
    leader: Any = theirs.leader_id
    further = {"identifier": uuid.uuid4(), "leader": None, "term": 7, "digest": "theirs"}
    _copy(theirs, deployment="other", history_from=theirs.initialized_at, **further)
    mine: Any = {"scheduler": theirs}
    instances = {
        row.pk: _copy(row, host="theirs", **mine) for row in list(SchedulerInstance.objects.all())
    }
    SchedulerState.objects.filter(pk=theirs.pk).update(leader=instances[leader])
    runs: dict[int | None, int] = {}
    for run in list(TaskRun.objects.order_by("pk")):
        instance = None if run.instance_id is None else instances[run.instance_id]
        values = {"attempt": run.attempt + 7, "error": "theirs", "instance_id": instance}
        runs[run.pk] = _copy(run, **values, **mine)
    for task in list(ScheduledTask.objects.order_by("pk")):
        values = {"scheduler_identifier": theirs.identifier, "failures": task.failures + 9}
        _copy(task, running_run=runs.get(task.running_run), **values, **mine)
    for model, values in _OTHERS.items():
        for row in list(model._base_manager.order_by("pk")):
            changed = {key: made(row) for key, made in values.items()}
            _copy(row, **changed, **mine)
    _write_more(theirs)


_OTHERS: dict[type[models.Model], dict[str, Callable[[Any], object]]] = {
    RegistrationSet: {"instance": lambda row: None},
    RegistrationPart: {},
    TaskOverride: {"author": lambda row: "theirs"},
    OutboxEvent: {"event_id": lambda row: uuid.uuid4()},
    AccessToken: {"key": lambda row: "theirs"},
}


def _write_more(theirs: SchedulerState) -> None:
    """Write what only the other deployment has, of names that ours is about to have."""
    now = datetime(2024, 1, 1, 10, 11, tzinfo=UTC)
    run = {"scheduler": theirs, "scheduled_for": now, "reason": "due"}
    TaskRun.objects.create(**run, task_name="new", outcome="running", running_slot="new")
    TaskRun.objects.create(**run, task_name="new-2", outcome="succeeded", started_at=now)
    TaskRun.objects.create(**run, task_name="plain", outcome="failed", finished_at=now)
    event = {"scheduler": theirs, "type": "job.started", "created_at": now}
    OutboxEvent.objects.create(**event, event_id=uuid.uuid4())
    OutboxEvent.objects.create(**event, event_id=uuid.uuid4(), dead_lettered_at=now)
    act = {"scheduler": theirs, "created_at": now, "author": "theirs"}
    TaskOverride.objects.create(**act, task_name="new-3", kind=TaskOverride.Kind.PAUSE)
    TaskOverride.objects.create(**act, task_name="plain", kind=TaskOverride.Kind.RUN)
    RegistrationSet.objects.create(
        scheduler=theirs, generation=9, registered_at=now, parts=[["of their set", []]]
    )
    AccessToken.objects.create(
        scheduler=theirs, name="their token", key="theirs too", digest="d", created_at=now
    )
    SchedulerInstance.objects.create(
        scheduler=theirs, host="theirs", pid=3, release="spring", digest="theirs",
        started_at=now, initialized_at=now, heartbeat_at=now, watched_since=now - DAY,
    )  # fmt: skip


_RANDOM = {"event_id", "body", "key", "reservation", "identifier", "claimed_by", "after_run"}


def rows_of(deployment: str) -> dict[str, list[dict[str, Any]]]:
    """Return all rows of a deployment; keys as numbers in order, instants of the test as such."""
    owned = list(apps.get_app_config("django_declarative_cron").get_models())
    querysets = {
        model: model._base_manager.filter(
            **{"deployment" if model is SchedulerState else "scheduler__deployment": deployment}
        ).order_by(*_ORDER.get(model, ("pk",)))
        for model in owned
    }
    places = {
        (str(key)): f"{model.__name__} {number}"
        for model, queryset in querysets.items()
        for number, key in enumerate(queryset.values_list("pk", flat=True))
        if model in (SchedulerInstance, TaskRun)
    }
    return {
        model.__name__: [_plain(model, row, places) for row in queryset.values()]
        for model, queryset in querysets.items()
    }


_ORDER: dict[type[models.Model], tuple[str, ...]] = {
    SchedulerInstance: ("started_at", "heartbeat_at", "pk"),
    RegistrationPart: ("digest",),
}


def _plain(
    model: type[models.Model], row: Mapping[str, Any], places: Mapping[str, str]
) -> dict[str, Any]:
    told = {}
    for column, value in row.items():
        if column in _RANDOM or (model is AccessToken and column == "digest"):
            told[column] = value is not None
        elif column in ("instance_id", "leader_id", "running_run"):
            told[column] = places.get(str(value), value and "somebody else's")
        elif isinstance(value, datetime) and value.year > 2024:
            told[column] = "now"
        elif column != model._meta.pk.attname and not column.startswith("scheduler"):
            told[column] = value
    return told
