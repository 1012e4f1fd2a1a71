"""A run in a worker of a task queue: taken up, called, and recorded there."""

from __future__ import annotations

import os
import signal
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import Error as DatabaseError

from ... import callables, conf, django_tasks
from ...core.declarations.declaration import Declaration, Target
from ...core.declarations.runners import PROCESS, THREAD, is_async
from ...models import Origin
from ...signals import publish
from ...store import external_jobs, liveness, manual_runs, rows
from ...store.external_jobs import Taken
from ...store.guard import Member
from .. import watchers
from ..clock import Clock, system_clock
from ..connections import renew
from ..context import Run
from ..fencing import member_of, this_process
from ..foreground import record
from ..heartbeat import Heartbeat
from ..loop import BackgroundThread
from ..outcome import Ending, failed
from ..work import Work
from .django_tasks import here_stopping
from .registry import call_once

EVERY = 1.0
"""Seconds between two looks."""

_STOPS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")


@contextmanager
def told_when_asked(work: Work, member: Member, clock: Clock) -> Iterator[None]:
    """Poll in a thread whether the run or the worker is to end."""
    over, stops = threading.Event(), list[int]()

    def look() -> None:
        while not clock.wait(over, EVERY):
            if stops:
                work.run.stopping.set()
            if not work.ending.asked.is_set():
                _ask(work, member)

    thread = BackgroundThread("relay", look)
    thread.start()
    try:
        with _noted(stops):
            yield
    finally:
        over.set()
        thread.join()


def _ask(work: Work, member: Member) -> None:
    try:
        if work.id in manual_runs.requested(member):
            work.ending.ask("cancelled")
    except DatabaseError as error:
        renew(error)


@contextmanager
def _noted(stops: list[int]) -> Iterator[None]:
    """Take note of signals that the worker handles, and call its handlers.

    The interrupted code may hold the lock of any event, so no event is set here.
    """
    with ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            for number in [getattr(signal, name) for name in _STOPS if hasattr(signal, name)]:
                handler = signal.getsignal(number)
                if callable(handler) and handler is not signal.default_int_handler:
                    stack.callback(_give_back, number, _listen(number, handler, stops), handler)
        yield


def _listen(number: int, handler: Callable[..., Any], stops: list[int]) -> Callable[..., Any]:
    def note(number: int, frame: Any) -> None:
        stops.append(number)
        handler(number, frame)

    signal.signal(number, note)
    return note


def _give_back(number: int, ours: Callable[..., Any], handler: Callable[..., Any]) -> None:
    """Restore a handler, unless the callback has set its own."""
    if signal.getsignal(number) is ours:
        signal.signal(number, handler)


class _Worker:
    """This process as an instance of the deployment while it has runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self._busy = 0

    @contextmanager
    def member(self, deployment: str, clock: Clock) -> Iterator[Member]:
        """Write heartbeats until this block and concurrent ones have ended."""
        with self._lock:
            if self._pid != os.getpid() or self._member.deployment != deployment:
                self._begin(deployment, clock)
            member = self._member
            if not self._busy:
                watchers.begin(None)
            self._busy += 1
            self._heartbeat.start()
        try:
            yield member
        finally:
            with self._lock:
                self._busy -= 1
                if not self._busy:
                    self._heartbeat.stop()
                    # The next run registers the instance again.
                    with suppress(DatabaseError):
                        liveness.leave(member, clock.now())
                is_idle = not self._busy
            if is_idle:
                watchers.end()

    def _begin(self, deployment: str, clock: Clock) -> None:
        options = conf.options()
        self._pid, self._busy = os.getpid(), 0
        self._member = member = member_of(options, clock, uuid.uuid4(), deployment=deployment)
        self._heartbeat = Heartbeat(clock, lambda: member)


_worker = _Worker()


def run_handed(
    context: Any,
    run: int,
    instance: str,
    deployment: str,
    trace: dict[str, str] | None = None,
) -> str:
    """Take a run up and call it; its outcome is in its row.

    Returns:
        the name of its last event, for the records of the task queue.
    """
    clock = system_clock
    process = this_process(conf.options())
    with _worker.member(deployment, clock) as member:
        taken = external_jobs.take_up(member, process, run, uuid.UUID(instance))
        if taken is None:
            return "not called: the run is in other hands, or has ended"
        with django_tasks.within(context):
            told = _called(taken, run, member, clock, trace or {})
        publish(told)
    return told[0].__class__.__name__ if told else "not recorded"


def _called(
    taken: Taken, run: int, member: Member, clock: Clock, trace: dict[str, str]
) -> list[Any]:
    work = replace(_work(taken, run), trace=trace)
    try:
        target = _target(taken)
        declaration = _declaration(taken, target)
    except Exception as error:
        result = failed(work, error, clock.now())
    else:
        told = replace(
            work.run,
            meta=declaration.meta_of(work.run.scheduled_for),
            max_attempts=declaration.retry.max_attempts,
        )
        work = replace(work, run=told, target=target, declaration=declaration)
        with told_when_asked(work, member, clock):
            result = call_once(work, clock)
    return record(member, result, clock)


def _work(taken: Taken, run: int) -> Work:
    started, ending = taken.started, Ending()
    told = Run(
        task_name=started.task_name,
        scheduled_for=started.scheduled_time,
        started_at=started.actual_time,
        attempt=started.attempt,
        reason=started.reason,
        timezone=taken.task.timezone,
        stopping=here_stopping(run) or threading.Event(),
        cancelled=ending.asked,
        id=run,
    )
    return Work(run, told, Target("", lambda: None), ending=ending)


def _target(taken: Taken) -> Target:
    data = taken.task.declaration
    target = callables.again(
        data["callback"],
        is_command=data["command"],
        is_from_outside=taken.task.origin == Origin.HTTP,
    )
    return replace(target, args=tuple(data["args"]))


def _declaration(taken: Taken, target: Target) -> Declaration:
    """Return the parts of the declaration that a call needs; a timeout needs a process."""
    task, data = taken.task, taken.task.declaration
    seconds, function = data.get("timeout"), target.function
    needs_context = isinstance(function, django_tasks.DjangoTask) and function.task.takes_context
    in_process = seconds is not None and not is_async(function) and not needs_context
    terms = rows.terms_of(task)
    return Declaration(
        taken.started.task_name,
        terms.schedule,
        target=target,
        retry=terms.retry,
        timeout=None if seconds is None else timedelta(seconds=seconds),
        runner=PROCESS if in_process else THREAD,
        options=data.get("options", {}),
        meta=data.get("meta", {}),
    )


# Task queues import the Task by the path of the function.
FUNCTION = run_handed
run_handed = django_tasks.make_task(run_handed, is_found=True)
