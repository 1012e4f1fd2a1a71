"""Callbacks of every kind, that other processes find by their dotted path."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import timedelta
from functools import partial, wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction

from django_declarative_cron import current_run
from django_declarative_cron.runtime import forking
from django_declarative_cron.runtime.work import Run
from tests.timeouts import TIMEOUT

logger = logging.getLogger("tests.runtime.runners")


if find_spec("django.tasks") or find_spec("django_tasks"):
    task = import_module("django.tasks" if find_spec("django.tasks") else "django_tasks").task

    @task(priority=0)
    def made_a_task(first: int, second: int) -> int:
        """Be a Task of Django's."""
        return first + second

    @task(takes_context=True)
    def takes_context(context: Any, word: str) -> str:
        """Be a Task that asks for its engine's result."""
        return f"{word} {context.task_result.backend}"


class UnreadableError(Exception):
    """Its text cannot be read."""

    def __str__(self) -> NoReturn:
        raise SystemExit("not even this")


def note(line: str) -> None:
    """Write a line for the test, and let nobody read half of it."""
    with Path(os.environ["DDC_TEST_NOTES"]).open("a") as notes:
        notes.write(line + "\n")


def notes(word: str) -> None:
    """Tell that it was called."""
    note(word)


def ok(run: Run) -> None:
    """Do work in the database."""
    User.objects.create(username=f"of {run.task_name}")


def gives_value(first: int, second: int) -> dict[str, Any]:
    """Return what JSON has."""
    return {"sum": first + second, "of": [first, second]}


def gives_its_trace() -> str:
    """Return the trace that it is called in."""
    from opentelemetry import trace

    return format(trace.get_current_span().get_span_context().trace_id, "032x")


def gives_its_run(run: Run) -> dict[str, Any]:
    """Return all that it was told."""
    return {
        each.name: str(getattr(run, each.name))
        for each in fields(Run)
        if each.name not in ("stopping", "cancelled")
    }


def fails() -> None:
    """Raise."""
    raise ValueError("it went wrong")


def leaves() -> None:
    """Raise what is no ``Exception``."""
    sys.exit(3)


def fails_unreadably() -> None:
    """Raise what cannot be worded."""
    raise UnreadableError


def fails_enormously() -> None:
    """Raise an exception of 50 MB, at the end of a long chain of large ones."""
    text = "x" * (50 * 1024 * 1024)
    last: Exception | None = None
    for number in range(1000):
        following = ValueError(text, number)
        following.__cause__ = last
        last = following
    raise KeyError(text) from last


def logs_and_gives_enormously() -> list[str]:
    """Log and return 50 MB."""
    text = "x" * (50 * 1024 * 1024)
    logging.getLogger("tests.enormous").info(text)
    return [text]


def logs(run: Run) -> None:
    """Log, and name the current run."""
    logger.debug("not kept")
    logger.warning("it is %s", "warm")
    current = current_run()
    assert current is not None
    logger.warning("current %s %s", current.task_name, current.id == run.id)


def until_cancelled(run: Run) -> None:
    """Run until it is told to end, and listen to that."""
    note(f"began {run.id} {os.getpid()}")
    run.cancelled.wait(TIMEOUT)


def until_stopping(run: Run) -> None:
    """Run until the scheduler begins to stop."""
    note("began")
    assert run.stopping.wait(TIMEOUT)


def spins() -> None:
    """Never return, and never give the processor away."""
    note(f"began {os.getpid()}")
    while True:
        pass


def reads() -> None:
    """Wait for bytes that never come."""
    mine, theirs = socket.socketpair()
    note(f"began {os.getpid()}")
    mine.recv(1)
    theirs.close()


def is_deaf() -> None:
    """Hear no signal but the one that nobody can be deaf to, and have a child that is the same."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "1000"])
    note(f"began {os.getpid()} {child.pid}")
    while True:
        pass


def leaves_a_deaf_child() -> None:
    """Start a program that ignores requests to end, and end when asked to."""
    program = "import signal, time; signal.signal(15, 1); print(flush=True); time.sleep(1000)"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    note(f"began {os.getpid()} {child.pid}")
    threading.Event().wait(TIMEOUT)


def cleans_up(run: Run) -> None:
    """Do what is to be done at the end, also when the end comes early."""
    try:
        note("began")
        threading.Event().wait(TIMEOUT)
    finally:
        note("cleaned up")


def crashes() -> None:
    """Be ended by the system."""
    os.kill(os.getpid(), signal.SIGSEGV)


def exits() -> None:
    """Leave without a word."""
    os._exit(7)


def closes_everything() -> None:
    """Close all but where it prints, then open what gets the numbers of what was closed."""
    os.closerange(3, 4096)
    path = os.environ["DDC_TEST_NOTES"]
    opened = [os.open(f"{path}.opened", os.O_RDWR | os.O_CREAT) for _ in range(260)]
    logger.warning("not to be written into a file")
    note(f"went on with {os.path.getsize(f'{path}.opened')} bytes in {len(opened)} files")


def closes_everything_and_waits() -> None:
    """Close what a daemon closes, then never return."""
    os.closerange(0, 4096)
    note("began")
    threading.Event().wait(TIMEOUT)


def eats_memory() -> int:
    """Take more than any limit allows."""
    return len(bytearray(2**33))


def eats_time() -> None:
    """Use the processor for ever."""
    while True:
        pass


def prints() -> None:
    """Print to both, from a child too."""
    sys.stdout.write("to stdout\n")
    sys.stdout.flush()
    subprocess.run(["echo", "from a child"], check=True)
    sys.stderr.write("x" * 100_000 + "the end\n")


MEETING = 8
FIVE_MINUTES = timedelta(minutes=5)
_meeting = asyncio.Barrier(MEETING)


async def meets() -> str:
    """Return once so many of them run at the same time; say in which thread."""
    await _meeting.wait()
    return threading.current_thread().name


async def ok_asynchronously(run: Run) -> None:
    """Do work in the database."""
    await User.objects.acreate(username=f"of {run.task_name}")


async def gives_value_asynchronously(first: int, second: int) -> dict[str, Any]:
    """Return what JSON has."""
    await asyncio.sleep(0)
    return gives_value(first, second)


async def gives_its_trace_asynchronously() -> str:
    """Return the trace that it is called in."""
    await asyncio.sleep(0)
    return gives_its_trace()


async def gives_its_run_asynchronously(run: Run) -> dict[str, Any]:
    """Return all that it was told."""
    return gives_its_run(run)


async def fails_asynchronously() -> None:
    """Raise."""
    raise ValueError("it went wrong")


async def leaves_asynchronously() -> None:
    """Raise what is no ``Exception``."""
    sys.exit(3)


async def fails_unreadably_asynchronously() -> None:
    """Raise what cannot be worded."""
    raise UnreadableError


async def fails_enormously_asynchronously() -> None:
    """Raise an exception of 50 MB."""
    fails_enormously()


async def logs_and_gives_enormously_asynchronously() -> list[str]:
    """Log and return 50 MB."""
    return logs_and_gives_enormously()


async def logs_asynchronously(run: Run) -> None:
    """Log, and name the current run."""
    await asyncio.to_thread(logs, run)


async def until_cancelled_asynchronously(run: Run) -> None:
    """Run until it is cancelled."""
    note(f"began {run.id} {os.getpid()}")
    await asyncio.sleep(TIMEOUT)


async def until_stopping_asynchronously(run: Run) -> None:
    """Run until the scheduler begins to stop."""
    note("began")
    while not run.stopping.is_set():
        await asyncio.sleep(0.01)


def _yields() -> Iterator[int]:
    note("ran")
    yield 1


def gives_generator() -> Iterator[int]:
    """Return code that has not run."""
    return _yields()


@wraps(_yields)
def decorated() -> Iterator[int]:
    """Be a generator behind a decorator."""
    return _yields()


def gives_map() -> Iterator[None]:
    """Return a call that has not happened."""
    return map(note, ["ran"])


@contextmanager
def is_context_manager() -> Iterator[None]:
    """Be what ``with`` runs."""
    note("ran")
    yield


async def _notes_later() -> None:
    note("ran")


async def gives_coroutine_asynchronously() -> Coroutine[Any, Any, None]:
    """Return a coroutine in place of awaiting it."""
    return _notes_later()


async def gives_generator_asynchronously() -> Iterator[int]:
    """Return code that has not run."""
    return _yields()


def works_and_gives_generator(run: Run) -> Iterator[int]:
    """Do work, and return code that has not run."""
    works_atomically(run)
    return _yields()


def works_and_commits_hooks(run: Run) -> str:
    """Do work, with functions for after its commit, of which some fail."""
    transaction.on_commit(partial(note, "first"))
    transaction.on_commit(fails)
    transaction.on_commit(leaves)
    transaction.on_commit(partial(note, "last"))
    return works_atomically(run)


def works_atomically(run: Run) -> str:
    """Do work in several statements."""
    User.objects.create(username=f"first of {run.task_name}")
    User.objects.create(username=f"second of {run.task_name}")
    return "done"


def works_and_loses_its_connection(at: int, run: Run) -> None:
    """Do work; let one statement fail from now on: of the work, or of the record of its success."""
    statements: list[str] = []

    def execute(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        statements.append(sql)
        if len(statements) - 1 == at:
            raise OperationalError(f"lost at {at}")
        return execute(sql, params, many, context)

    connection.execute_wrappers.append(execute)
    works_atomically(run)


def works_and_fails(run: Run) -> None:
    """Do work, then raise."""
    works_atomically(run)
    raise ValueError("it went wrong")


def works_and_dies(run: Run) -> None:
    """Do work, then be gone."""
    works_atomically(run)
    os.kill(os.getpid(), signal.SIGKILL)


def works_and_leaves_a_savepoint(run: Run) -> None:
    """Do work, and leave a block open within the transaction."""
    transaction.atomic().__enter__()
    works_atomically(run)


def works_until_cancelled(run: Run) -> None:
    """Do work, then return because it was asked to."""
    works_atomically(run)
    note(f"began {run.id}")
    run.cancelled.wait(TIMEOUT)


def works_until_it_may_go_on(run: Run) -> None:
    """Do work, then wait for the test."""
    works_atomically(run)
    note(f"began {run.id}")
    while "go on" not in Path(os.environ["DDC_TEST_NOTES"]).read_text():
        threading.Event().wait(0.02)


def leads_a_session() -> bool:
    """Tell whether its process can leave neither its group nor its session."""
    return os.getpid() == os.getpgrp() == os.getsid(0)


def comes_back_twice() -> int | str:
    """Return in a forked child too; the parent returns the exit code of the child."""
    child = forking.fork()
    if child == 0:
        return "the child"
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def leaves_a_fork_behind(run: Run) -> None:
    """Fork a process that holds all that this one has, and ends when it is killed."""
    began = os.fork()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if began:
        note(f"began {os.getpid()} {began}")
    threading.Event().wait(TIMEOUT)
    os._exit(0)
