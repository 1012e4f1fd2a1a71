"""One run in this process, now: started, kept alive, recorded like every other."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from django.db import Error as DatabaseError
from django.db import OperationalError

from .. import conf
from ..core import events
from ..core.declaration import Declaration
from ..signals import publish
from ..store import database, foreground, instances, results
from ..store.foreground import Start
from ..store.guard import Member
from ..store.instances import Process
from ..store.overrides import Act
from ..store.results import Result
from . import watchers
from .clock import Clock
from .companion import Companion
from .connections import renew
from .ending import Ending
from .heartbeat import Heartbeat
from .runners.chosen import call_once
from .work import Run, Work

_ATTEMPTS_TO_RECORD = 10
_BETWEEN_ATTEMPTS = 0.5


def _nothing() -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run in the foreground ended.

    Args:
        result: of the callback.
        end: what was recorded of it.
    """

    result: Result
    end: events.Event | None


def run_now(
    declaration: Declaration,
    act: Act,
    clock: Clock,
    *,
    started: Callable[[], None] = _nothing,
    companion: Companion | None = None,
) -> Ran:
    """Run a declared task to its end in this thread.

    Args:
        declaration: of a task that a scheduler has registered.
        act: who asks, when, why.
        clock: source of time.
        started: called once the start is committed.
        companion: the process beside this one that vouches for it, if there is one; it is
            dismissed when the run is recorded.

    Raises:
        NotRegisteredError: the task has no row.
        UnreadableRowError: its row is damaged.
        AlreadyRunningError: its run is in progress, here or elsewhere.
        django.db.Error: it was not started, or its end could not be recorded; the next
            scheduler then finds it interrupted.
    """
    member = outsider(clock)
    start = foreground.start(member, this_process(), declaration, act)
    return run_started(member, start, declaration, clock, started, companion)


def run_started(
    member: Member,
    start: Start,
    declaration: Declaration,
    clock: Clock,
    started: Callable[[], None] = _nothing,
    companion: Companion | None = None,
) -> Ran:
    """Run what is committed as started to its end in this thread, and record it.

    Args:
        member: who started it.
        start: the start.
        declaration: of the task.
        clock: source of time.
        started: called first.
        companion: as for ``run_now``.

    Raises:
        django.db.Error: its end could not be recorded.
    """
    watchers.begin([declaration])
    try:
        with _living(member, clock, companion):
            publish(start.events)
            started()
            result = call_once(_work(start, declaration, member), clock)
            told = record(member, result, clock)
        publish(told)
    finally:
        watchers.end()
    return Ran(result, told[0] if told else None)


def this_process() -> Process:
    """Say where runs in the foreground take place."""
    return Process(socket.gethostname(), os.getpid(), conf.options().RELEASE)


def outsider(clock: Clock) -> Member:
    """Make an instance of its own, which holds no registration set and never leads.

    Args:
        clock: source of time.
    """
    options = conf.options()
    return Member(
        using=database.alias(),
        deployment=options.DEPLOYMENT,
        instance=uuid.uuid4(),
        digest="",
        lease=options.LEASE,
        renew=options.RENEW,
        dead_after=options.DEAD_AFTER,
        database_time=clock.database_time(),
    )


@contextmanager
def _living(member: Member, clock: Clock, companion: Companion | None) -> Iterator[None]:
    """Keep the leader from taking the run for one of a dead process; leave at the end."""
    heartbeat = Heartbeat(clock, lambda: member, companion)
    heartbeat.start()
    try:
        yield
    except BaseException:
        heartbeat.stop()
        with suppress(DatabaseError):
            instances.give_up(member)
        raise
    heartbeat.stop()
    # The run is recorded; an instance that could not leave is found silent later.
    with suppress(DatabaseError):
        instances.leave(member, clock.now())
    if companion is not None:
        companion.dismiss()


def _work(start: Start, declaration: Declaration, member: Member) -> Work:
    claim, ending = start.claim, Ending()
    return Work(
        id=claim.run,
        run=Run.of(claim.started, declaration, threading.Event(), ending.asked, claim.run),
        target=declaration.target,
        done=lambda result: None,
        declaration=declaration,
        ending=ending,
        member=member if declaration.atomic else None,
    )


def record(member: Member, result: Result, clock: Clock) -> list[events.Event]:
    """Record the end of a run; where the database refuses, try again for a while.

    Args:
        member: whose run it is.
        result: of the run.
        clock: by which it waits.

    Raises:
        django.db.Error: it refused every time.
    """
    for _ in range(_ATTEMPTS_TO_RECORD - 1):
        try:
            return _recorded(member, result, clock)
        except DatabaseError as error:
            renew(error)
            clock.wait(threading.Event(), _BETWEEN_ATTEMPTS)
    return _recorded(member, result, clock)


def _recorded(member: Member, result: Result, clock: Clock) -> list[events.Event]:
    recorded = results.record(member, [result], clock.now())
    if recorded.held:
        raise OperationalError(f"somebody else holds the rows of task {result.task_name!r}")
    return recorded.events
