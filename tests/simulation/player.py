"""Playing a story with the real engine, and finding what is wrong with it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.db import connection, transaction

from django_declarative_cron import signals
from django_declarative_cron.exceptions import (
    CronExpressionInvalidError,
    DeclarativeCronError,
    ScheduleTaskError,
    StopSchedulerError,
)
from django_declarative_cron.models import ScheduledTask, SchedulerInstance, TaskRun
from django_declarative_cron.runtime.work import Run
from django_declarative_cron.store import operator_actions
from django_declarative_cron.testing import SimulatedFailure, Simulation
from django_declarative_cron.testing.simulation import Instance

from . import invariants
from .faults import Faults, Of
from .judging import judged, judged_rows
from .ledger import Ledger, Snapshot
from .steps import Played, Step, Story, Wrong

_SECOND = timedelta(seconds=1)
_OFTEN = timedelta(minutes=10)
_SELDOM = timedelta(hours=1)
_AT_REST = timedelta(minutes=2)


class StoryEndsError(Exception):
    """Tell that a story cannot go on, although nothing is wrong."""


@dataclass(eq=False)
class Job:
    """A callback whose runs go as the story says.

    Args:
        note: is told of each call.
        plan: outcome and seconds of each run, in turn and repeated.
    """

    note: Callable[[tuple[str, datetime, int, str]], None]
    plan: tuple[tuple[str, float], ...] = (("ok", 0),)
    calls: int = 0
    duration: timedelta = timedelta(0)

    def __call__(self, run: Run) -> None:
        outcome, seconds = self.plan[self.calls % len(self.plan)]
        self.calls += 1
        self.duration = timedelta(seconds=seconds)
        self.note((run.task_name, run.started_at, run.attempt, run.reason))
        if outcome != "ok":
            raise SimulatedFailure(outcome)


def play(story: Story, *, to_the_end: bool = False) -> Played:
    """Play a story in an empty database and leave it empty.

    With ``to_the_end`` it goes on after the first thing that is wrong, and the theory judges too.
    """
    faults = Faults()
    player = _Player(story, faults, to_the_end)
    receiver = player.ledger.note_reset
    signals.SIGNALS["task_high_water_mark_reset"].connect(receiver)
    try:
        with connection.execute_wrapper(faults):
            player.play()
    except Exception as error:
        last = "".join(traceback.format_exception(error)[-4:])
        player.played.wrong.append(Wrong(f"raised {type(error).__name__}", last))
    finally:
        signals.SIGNALS["task_high_water_mark_reset"].disconnect(receiver)
        _clear()
    return player.played


def _clear() -> None:
    # Row by row in no order: MariaDB would look at each reference at once.
    with transaction.atomic(), connection.constraint_checks_disabled():
        for model in apps.get_app_config("django_declarative_cron").get_models():
            model._default_manager.all()._raw_delete(using=connection.alias)


class _Player:
    def __init__(self, story: Story, faults: Faults, to_the_end: bool) -> None:
        self.story = story
        self.to_the_end = to_the_end
        self.faults = faults
        self.ledger = Ledger()
        self.played = Played()
        lease = None if story.lease is None else timedelta(seconds=story.lease)
        self.sim = Simulation(story.start, instances=story.instances, lease=lease)
        self._jobs: dict[str, Job] = {}
        self._began = self.sim.now

    # --- the whole story ---

    def play(self) -> None:
        for number, step in enumerate(self.story.steps):
            self.faults.begin_step()
            goes_on = self._take(step)
            self._look(number)
            if self._is_over or not goes_on:
                break
        else:
            self._come_to_rest()
        self.played.starts = self.ledger.calls.total()
        if not self._is_over:
            self.played.wrong += judged(self.sim, self.story)
            self.played.wrong += self._judged_rows()

    @property
    def _is_over(self) -> bool:
        return bool(self.played.wrong) and not self.to_the_end

    def _take(self, step: Step) -> bool:
        """Take one step; return whether the story can go on."""
        before = self.sim.now
        try:
            getattr(self, f"do_{step[0].replace(' ', '_')}")(*step[1:])
        except StoryEndsError:
            return False
        except (ScheduleTaskError, StopSchedulerError) as error:
            if not self._was_refused(error):
                raise
            return not isinstance(error, StopSchedulerError) or self.story.lease is not None
        finally:
            self.played.passed += max(self.sim.now - before, timedelta(0))
        return True

    def _was_refused(self, error: DeclarativeCronError) -> bool:
        return "the server closed the connection" in str(error.__cause__ or error)

    def _look(self, number: int | None) -> None:
        """Hold the rows to the invariants, unless nothing was written."""
        if not self.faults.has_written:
            return
        self.faults.has_written = False
        with self.faults.lifted():
            snapshot = Snapshot.taken(self.sim.now)
        entries = self.sim.actions()
        listed = [each.record for each in entries if each.record["event"] == "IEs"]
        self.ledger.active = listed[-1]["registrations"] if listed else None
        self.ledger.follow(list(snapshot.tasks.values()), snapshot.now)
        found = [*invariants.broken(snapshot, self.ledger), *self._runs_nobody_runs(snapshot)]
        self.played.wrong += [Wrong(rule, text, number) for rule, text in found]

    def _runs_nobody_runs(self, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
        """A run in progress is one that its living instance really runs, or has to record."""
        for instance in self._each():
            scheduler = instance.scheduler
            if scheduler is None or instance.is_hanging or self.faults.are_armed:
                continue
            known = self.sim.in_flight | instance.unrecorded
            for run in snapshot.runs:
                mine = run["instance_id"] == scheduler.id and run["outcome"] == "running"
                if mine and run["id"] not in known:
                    yield "runs are run", f"run {run['id']} is in progress and nobody runs it"

    def _come_to_rest(self) -> None:
        """Let everything that can be done be done; then nothing may be left undone."""
        self.faults.disarm()
        self.faults.begin_step()
        for instance in self._each():
            instance.recover()
        lease = timedelta(seconds=self.story.lease or 0)
        self.do_advance((_AT_REST + 2 * lease).total_seconds())
        self._look(None)
        working = [each.scheduler for each in self._each() if each.is_active and each.scheduler]
        # Without any task an instance does not poll, so it sees nothing either.
        if any(scheduler.declarations for scheduler in working):
            self.played.wrong += [Wrong("nothing is overdue", each) for each in self._overdue()]
        for run in TaskRun.objects.filter(outcome="running").exclude(pk__in=self.sim.in_flight):
            if run.instance_id in {scheduler.id for scheduler in working}:
                text = f"run {run.pk} has ended, and its result is not recorded"
                self.played.wrong.append(Wrong("runs are run", text))

    def _judged_rows(self) -> list[Wrong]:
        with self.faults.lifted():
            for instance in self._each():
                if instance.is_active and instance.scheduler is not None:
                    instance.scheduler.beat()
            return list(judged_rows(self.sim, self.story))

    def _overdue(self) -> Iterator[str]:
        before = self.sim.now - 2 * _SECOND
        # What its own run held up until just now is seen a moment later.
        tasks = ScheduledTask.objects.filter(wake_at__lte=before).exclude(freed_at__gt=before)
        for name, wake in tasks.values_list("name", "wake_at"):
            yield f"{name} was to be looked at at {wake}, it is {self.sim.now}"

    # --- the steps ---

    def _each(self) -> list[Instance]:
        return [self.sim[index] for index in range(self.story.instances)]

    def _one(self, index: int) -> Instance:
        return self.sim[index % self.story.instances]

    def do_deploy(self, registrations: tuple[Any, ...]) -> None:
        for instance in self._each():
            self.do_init(instance.index, registrations)

    def do_init(self, index: int, registrations: tuple[Any, ...]) -> None:
        instance = self._one(index)
        if not instance.is_hanging:
            instance.initialize([self._entry(*each) for each in registrations])

    def do_mistake(self, index: int, registrations: tuple[Any, ...]) -> None:
        instance = self._one(index)
        if instance.is_hanging:
            return
        wrong = {**self._entry("wrong", "* * * * *", 60, "UTC"), "cron": "* * * * 8"}
        try:
            instance.initialize([*(self._entry(*each) for each in registrations), wrong])
        except CronExpressionInvalidError:
            return
        raise AssertionError("a set with a mistake was accepted")

    def _entry(
        self, name: str, cron: str, delay: float, zone: str, keys: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        return {
            "name": name,
            "cron": cron,
            "callback": self._job(name),
            "retry_delay": timedelta(seconds=delay),
            "timezone": zone,
            "dialect": "posix",
            "overlap_policy": "coalesce",
            **(keys or {}),
        }

    def _job(self, name: str) -> Job:
        return self._jobs.setdefault(name, Job(self.ledger.note_call))

    def do_job(self, name: str, plan: tuple[tuple[str, float], ...]) -> None:
        self._job(name).plan = plan

    def do_advance(self, seconds: float) -> None:
        pace = self.sim.pace_of_heartbeats or (_SELDOM if self.story.instances == 1 else _OFTEN)
        self.sim.advance_to(self.sim.now + timedelta(seconds=seconds), at_least_every=pace)

    def do_jump(self, seconds: float) -> None:
        self.ledger.stepped_back |= seconds < 0
        self.sim.jump_to(self.sim.now + timedelta(seconds=seconds))

    def do_stop(self, index: int) -> None:
        instance = self._one(index)
        if not instance.is_active or instance.scheduler is None:
            return
        life = instance.scheduler.id
        instance.stop()
        with self.faults.lifted():
            stays = SchedulerInstance.objects.filter(id=life, stopped_at=None).exists()
        if stays and instance.scheduler is not None and self.story.lease is None:
            # Nobody else can lead any more where leases do not end.
            raise StoryEndsError

    def do_crash(self, index: int) -> None:
        with self.faults.lifted():
            self._one(index).crash()

    def do_hang(self, index: int) -> None:
        if self.story.lease is not None and self._one(index).is_active:
            self._one(index).hang()

    def do_recover(self, index: int) -> None:
        self._one(index).recover()

    def do_crash_at(self, statement: int, of: Of) -> None:
        self.faults.crash_at(statement, of)

    def do_refuse(self, statement: int, of: Of, times: int) -> None:
        self.faults.refuse(statement, of, times)

    # --- what people do ---

    @contextmanager
    def _person(self) -> Iterator[operator_actions.Act]:
        """Let a person act a second later; nobody's faults are theirs."""
        self.do_advance(1)
        with self.faults.lifted():
            yield operator_actions.Act(author="somebody", at=self.sim.now)
        self.sim.stir()

    def do_pause(self, name: str, seconds: float | None) -> None:
        with self._person() as act:
            until = None if seconds is None else act.at + timedelta(seconds=seconds)
            for paused in operator_actions.pause([name], act, until=until):
                self.ledger.note_pause(paused, act.at, until)

    def do_resume(self, name: str) -> None:
        with self._person() as act:
            for resumed in operator_actions.resume([name], act):
                self.ledger.note_resume(resumed, act.at)

    def do_run(self, name: str) -> None:
        with self._person() as act:
            operator_actions.request_run([name], act)

    def do_clear(self, name: str) -> None:
        with self._person() as act:
            for cleared in operator_actions.clear_retry([name], act):
                newest = TaskRun.objects.filter(task_name=name).latest("id")
                self.ledger.cleared[cleared] = newest.pk
