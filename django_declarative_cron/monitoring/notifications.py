"""Telling people what needs them: by events, and by a look at the rows now and then.

Events tell at once what happens in this process. A look finds what others recorded, such as
the worker of an engine, and what no event tells: tasks that are overdue, and that nobody leads.
The leader tells of tasks; that nobody leads is told by the living instance with the least id.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import connections

from .. import conf
from ..core import events
from ..core.channels import Channel
from ..core.declarations.declaration import Declaration
from ..core.notifications import Ledger, Look, Message, Notice, Observer
from ..core.options import Options
from ..runtime.clock import Clock, system_clock
from ..runtime.connections import leave_pool, renew
from ..runtime.watchers import Whose
from ..signals import report, signal_of
from ..store import metrics_queries
from ..store.database import alias
from ..store.guard import Member
from ..store.task_status import patience
from .channels import deliver
from .delivery import Courier, Failure

LOOK = 15.0
"""Seconds between two looks at the rows."""

_JOIN = 1.0

_HEARD = (
    events.TaskRunFailed,
    events.TaskCommitHookFailed,
    events.TaskRunCompleted,
    events.TaskSkipped,
    events.TaskPausedByFailures,
    events.TaskBroken,
    events.LeadershipGained,
)


class Notifications:
    """Hear events, look at rows, and tell people.

    Args:
        clock: by which limits are kept.
    """

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._ledgers: list[Ledger] = []
        self._couriers: dict[str, Courier] = {}
        self._observer = Observer()
        self._busy = threading.RLock()
        self._woken = threading.Event()
        self._whose: Whose = lambda: None
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._looked: float | None = None

    def begin(self, declarations: Sequence[Declaration] | None, whose: Whose) -> None:
        """Tell people from now on, where the options name channels and this process may lead."""
        options = conf.options()
        if declarations is None or not options.NOTIFY:
            return
        self._whose = whose
        with self._busy:
            if [each.channel for each in self._ledgers] != list(options.NOTIFY):
                self._ledgers = [Ledger(each, options.DEPLOYMENT) for each in options.NOTIFY]
        for kind in _HEARD:
            signal_of(kind).connect(self._hear)
        if self._thread is None or not self._thread.is_alive():
            # Of its own: one before it that still waits for the database ends all the same.
            self._ending = threading.Event()
            self._observer, self._looked = Observer(), None
            self._thread = threading.Thread(
                target=self._run, args=(self._ending,), name="declarative-cron-notify", daemon=True
            )
            self._thread.start()

    def end(self, seconds: float) -> None:
        """Send what waits, and hear no more."""
        for kind in _HEARD:
            signal_of(kind).disconnect(self._hear)
        self._ending.set()
        self._woken.set()
        until = self._clock.monotonic() + seconds
        if self._thread is not None:
            self._thread.join(min(seconds, _JOIN))
            self._thread = None
        self._hand_out(hurry=True)
        for courier in self._couriers.values():
            courier.finish(until - self._clock.monotonic())

    def add(self, notice: Notice) -> None:
        """Take in something that people are to be told."""
        now = self._clock.monotonic()
        with self._busy:
            for ledger in self._ledgers:
                ledger.add(notice, now)
        self._woken.set()

    # --- events ---

    def _hear(self, event: Any, **_: object) -> None:
        match event:
            case events.TaskRunFailed(task_name=task):
                with self._busy:
                    self._observer.hear_failure(task)
                self.add(Notice("failure", task, event.at, event.error or "it failed"))
            case events.TaskCommitHookFailed(task_name=task):
                words = f"it succeeded, and work after its commit failed: {event.error}"
                self.add(Notice("failure", task, event.at, words))
            case events.TaskRunCompleted(task_name=task):
                with self._busy:
                    was_failing = self._observer.hear_success(task)
                if was_failing:
                    self.add(Notice("recovery", task, event.at, "it succeeds again"))
            case events.TaskSkipped(task_name=task, outcome="missed"):
                self.add(Notice("missed", task, event.at, _missed(event), event.count))
            case events.TaskPausedByFailures(task_name=task):
                words = f"{event.failures} failures in a row paused it until someone resumes it"
                self.add(Notice("failure", task, event.at, f"{words}: {event.error}"))
            case events.TaskBroken(task_name=task):
                self.add(Notice("failure", task, event.at, f"it was set aside: {event.reason}"))
            case events.LeadershipGained():
                self._woken.set()

    # --- the thread ---

    def _run(self, ending: threading.Event) -> None:
        leave_pool(alias())
        while not ending.is_set():
            self._woken.clear()
            try:
                self._look_now_and_then()
                self._hand_out()
            except BaseException as error:
                renew(error)
                report("A look for what people are to be told", error)
            self._clock.wait(self._woken, self._pause())
        connections.close_all()

    def _pause(self) -> float:
        with self._busy:
            due = [ledger.due_at for ledger in self._ledgers]
        now = self._clock.monotonic()
        looked = now if self._looked is None else self._looked
        soonest = min([looked + LOOK, *(each for each in due if each is not None)])
        return max(soonest - now, 0.05)

    def _look_now_and_then(self) -> None:
        now, member = self._clock.monotonic(), self._whose()
        if member is None or (self._looked is not None and now - self._looked < LOOK):
            return
        self._looked = now
        with self._busy:
            self._observer.begin_look()
        look = self._look(member, conf.options())
        with self._busy:
            found = [] if look is None else self._observer.compare(look)
        for notice in found:
            self.add(notice)

    def _look(self, member: Member, options: Options) -> Look | None:
        using, deployment = member.using, member.deployment
        lead = metrics_queries.lead_of(using, deployment, member.database_time)
        if lead is None:
            return None
        at = self._clock.now()
        leaderless = lead.leaderless()
        if leaderless is not None and leaderless < patience(options.LEASE).total_seconds():
            leaderless = None
        lives = patience(options.LEASE).total_seconds()
        living = [each for each, silent in lead.present.items() if silent <= lives]
        speaks = member.instance == min(living, default=None)
        if lead.leader != member.instance:
            return Look(at, leads=False, speaks=speaks, leaderless=leaderless)
        troubles = metrics_queries.troubles_of(using, deployment, at)
        news = self._observer.unknown(troubles.failing)
        errors = metrics_queries.errors_of(using, deployment, news)
        failing = {name: (n, errors.get(name, "")) for name, n in troubles.failing.items()}
        return Look(at, True, speaks, leaderless, failing, troubles.overdue)

    def _hand_out(self, *, hurry: bool = False) -> None:
        now = self._clock.monotonic()
        with self._busy:
            found = [(each.channel, each.due(now, hurry=hurry)) for each in self._ledgers]
        for channel, message in found:
            if message is not None:
                self._send(channel, message)

    def _send(self, channel: Channel, message: Message) -> None:
        courier = self._couriers.get(channel.name)
        if courier is None:
            tell = partial(_failed, self._clock, channel.name)
            courier = Courier(f"declarative-cron-notify-{channel.name}", tell, self._clock)
            self._couriers[channel.name] = courier
        message_id = uuid.uuid4()
        courier.send(lambda: deliver(channel, message, message_id, self._clock.now()))


def _missed(event: events.TaskSkipped) -> str:
    at = f"{event.scheduled_time:%Y-%m-%d %H:%M} UTC"
    if event.reason == "too_late":
        return f"what was due at {at} was too old to be caught up"
    return f"no scheduler was there at {at}"


def _failed(clock: Clock, channel: str, failure: Failure) -> events.Event:
    return events.NotificationFailed(
        at=clock.now(), channel=channel, error=failure.error, failures=failure.failures
    )
