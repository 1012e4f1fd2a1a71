"""Notify operators: by the events of this process, and by polling the database.

Events report immediately what happens in this process. Polling finds results that another process
recorded, overdue tasks, and a missing leader. The leader notifies of tasks; the live instance with
the smallest id notifies that there is no leader.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

from .. import conf
from ..core import events
from ..core.channels import Channel
from ..core.declarations.declaration import Declaration
from ..core.notifications import Message, Notice, NoticeQueue, Observation, Observer
from ..core.options import Options
from ..runtime.clock import Clock, system_clock
from ..runtime.connections import renew
from ..runtime.loop import BackgroundThread
from ..runtime.watchers import Whose
from ..signals import report, signal_of
from ..store import overview
from ..store.guard import Member
from ..store.status import attendance, patience
from .channels import deliver
from .delivery import Delivery

POLL_INTERVAL = 15.0
_JOIN = 1.0

_EVENTS = (
    events.TaskRunFailed,
    events.TaskCommitHookFailed,
    events.TaskRunCompleted,
    events.TaskSkipped,
    events.TaskPausedByFailures,
    events.TaskBroken,
    events.LeadershipGained,
)


class Notifications:
    """Collect notices from events and polls, and send them to the channels."""

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._queues: list[NoticeQueue] = []
        self._deliveries: dict[str, Delivery] = {}
        self._observer = Observer()
        self._lock = threading.RLock()
        self._woken = threading.Event()
        self._whose: Whose = lambda: None
        self._thread: BackgroundThread | None = None
        self._ending = threading.Event()
        self._polled: float | None = None

    def begin(self, declarations: Sequence[Declaration] | None, whose: Whose) -> None:
        """Start if the options name channels and this process may become the leader."""
        options = conf.options()
        if declarations is None or not options.NOTIFY:
            return
        self._whose = whose
        with self._lock:
            if [each.channel for each in self._queues] != list(options.NOTIFY):
                self._queues = [NoticeQueue(each, options.DEPLOYMENT) for each in options.NOTIFY]
        for kind in _EVENTS:
            signal_of(kind).connect(self._receive)
        if self._thread is None or not self._thread.is_alive:
            # A new event, so that a former thread that waits for the database ends all the same.
            self._ending = threading.Event()
            self._observer, self._polled = Observer(), None
            self._thread = BackgroundThread("notify", partial(self._run, self._ending))
            self._thread.start()

    def end(self, seconds: float) -> None:
        """Stop, and send the notices that wait."""
        for kind in _EVENTS:
            signal_of(kind).disconnect(self._receive)
        self._ending.set()
        self._woken.set()
        until = self._clock.monotonic() + seconds
        if self._thread is not None:
            self._thread.join(min(seconds, _JOIN))
            self._thread = None
        self._send_due(hurry=True)
        for delivery in self._deliveries.values():
            delivery.finish(max(until - self._clock.monotonic(), 0.0))

    def add(self, notice: Notice) -> None:
        now = self._clock.monotonic()
        with self._lock:
            for queue in self._queues:
                queue.add(notice, now)
        self._woken.set()

    # --- events ---

    def _receive(self, event: Any, **_: object) -> None:
        match event:
            case events.TaskRunFailed(task_name=task):
                with self._lock:
                    self._observer.task_failed(task)
                self.add(Notice("failure", task, event.at, event.error or "it failed"))
            case events.TaskCommitHookFailed(task_name=task):
                text = f"it succeeded, and work after its commit failed: {event.error}"
                self.add(Notice("failure", task, event.at, text))
            case events.TaskRunCompleted(task_name=task):
                with self._lock:
                    was_failing = self._observer.task_succeeded(task)
                if was_failing:
                    self.add(Notice("recovery", task, event.at, "it succeeds again"))
            case events.TaskSkipped(task_name=task, outcome="missed"):
                self.add(Notice("missed", task, event.at, _missed(event), event.count))
            case events.TaskPausedByFailures(task_name=task):
                text = f"{event.failures} failures in a row paused it until someone resumes it"
                self.add(Notice("failure", task, event.at, f"{text}: {event.error}"))
            case events.TaskBroken(task_name=task):
                self.add(Notice("failure", task, event.at, f"it was set aside: {event.reason}"))
            case events.LeadershipGained():
                self._woken.set()

    # --- the thread ---

    def _run(self, ending: threading.Event) -> None:
        while not ending.is_set():
            self._woken.clear()
            try:
                self._poll_if_due()
                self._send_due()
            except BaseException as error:
                renew(error)
                report("Polling for notifications", error)
            self._clock.wait(self._woken, self._pause())

    def _pause(self) -> float:
        with self._lock:
            due = [queue.due_at for queue in self._queues]
        now = self._clock.monotonic()
        polled = now if self._polled is None else self._polled
        next_at = min([polled + POLL_INTERVAL, *(each for each in due if each is not None)])
        return max(next_at - now, 0.05)

    def _poll_if_due(self) -> None:
        now, member = self._clock.monotonic(), self._whose()
        if member is None or (self._polled is not None and now - self._polled < POLL_INTERVAL):
            return
        self._polled = now
        with self._lock:
            self._observer.begin_poll()
        observation = self._poll(member, conf.options())
        with self._lock:
            found = [] if observation is None else self._observer.compare(observation)
        for notice in found:
            self.add(notice)

    def _poll(self, member: Member, options: Options) -> Observation | None:
        using, deployment = member.using, member.deployment
        lead = attendance(using, deployment, member.database_time)
        if lead is None:
            return None
        at, limit = self._clock.now(), patience(options.LEASE)
        leaderless = lead.leaderless()
        if leaderless is not None and leaderless < limit.total_seconds():
            leaderless = None
        live = [each.pk for each in lead.heard(limit)]
        speaks = member.instance == min(live, default=None)
        if lead.state.leader_id != member.instance:
            return Observation(at, leads=False, speaks=speaks, leaderless=leaderless)
        found = overview.failing_tasks(using, deployment)
        errors = overview.errors_of(using, deployment, self._observer.unknown(found))
        failing = {name: (n, errors.get(name, "")) for name, n in found.items()}
        overdue = overview.overdue_since(using, deployment, at)
        return Observation(at, True, speaks, leaderless, failing, overdue)

    def _send_due(self, *, hurry: bool = False) -> None:
        now = self._clock.monotonic()
        with self._lock:
            found = [(each.channel, each.due(now, hurry=hurry)) for each in self._queues]
        for channel, message in found:
            if message is not None:
                self._send(channel, message)

    def _send(self, channel: Channel, message: Message) -> None:
        delivery = self._deliveries.get(channel.name)
        if delivery is None:
            failed = partial(self._failed, channel.name)
            delivery = Delivery(f"declarative-cron-notify-{channel.name}", failed)
            self._deliveries[channel.name] = delivery
        message_id = uuid.uuid4()
        delivery.send(lambda: deliver(channel, message, message_id, self._clock.now()))

    def _failed(self, channel: str, error: str, failures: int) -> events.Event:
        at = self._clock.now()
        return events.NotificationFailed(at=at, channel=channel, error=error, failures=failures)


def _missed(event: events.TaskSkipped) -> str:
    at = f"{event.scheduled_time:%Y-%m-%d %H:%M} UTC"
    if event.reason == "too_late":
        return f"the occurrence of {at} was too old to be caught up"
    return f"no scheduler was at work at {at}"
