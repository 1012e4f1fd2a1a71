"""Callbacks of every kind, that other processes find by their dotted path."""

from __future__ import annotations

import asyncio
import decimal
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from datetime import timedelta
from functools import partial, wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.urls import get_urlconf, set_urlconf
from django.utils import timezone, translation

from django_declarative_cron import current_run
from django_declarative_cron.runtime import forking
from django_declarative_cron.runtime.work import Run
from tests.timeouts import TIMEOUT

logger = logging.getLogger("tests.runtime.runners")


if find_spec("django.tasks") or find_spec("django_tasks"):
    task = import_module("django.tasks" if find_spec("django.tasks") else "django_tasks").task

    @task(priority=0)
    def made_a_task(first: int, second: int) -> int:
        return first + second

    @task(takes_context=True)
    def takes_context(context: Any, word: str) -> str:
        return f"{word} {context.task_result.backend}"


class UnreadableError(Exception):
    def __str__(self) -> NoReturn:
        raise SystemExit("not even this")


def note(line: str) -> None:
    """Write a line for the test, and let nobody read half of it."""
    with Path(os.environ["DDC_TEST_NOTES"]).open("a") as notes:
        notes.write(line + "\n")


# --- as functions, and as coroutines by a name with ``_asynchronously`` at its end ---


def ok(run: Run) -> None:
    User.objects.create(username=f"of {run.task_name}")


async def ok_asynchronously(run: Run) -> None:
    await User.objects.acreate(username=f"of {run.task_name}")


def logs(run: Run) -> None:
    logger.debug("not kept")
    logger.warning("it is %s", "warm")
    current = current_run()
    assert current is not None
    logger.warning("current %s %s", current.task_name, current.id == run.id)


async def logs_asynchronously(run: Run) -> None:
    await asyncio.to_thread(logs, run)


def until_cancelled(run: Run) -> None:
    note(f"began {run.id} {os.getpid()}")
    run.cancelled.wait(TIMEOUT)


async def until_cancelled_asynchronously(run: Run) -> None:
    note(f"began {run.id} {os.getpid()}")
    await asyncio.sleep(TIMEOUT)


def until_stopping(run: Run) -> None:
    note("began")
    assert run.stopping.wait(TIMEOUT)


async def until_stopping_asynchronously(run: Run) -> None:
    note("began")
    while not run.stopping.is_set():
        await asyncio.sleep(0.01)


def gives_value(first: int, second: int) -> dict[str, Any]:
    return {"sum": first + second, "of": [first, second]}


def gives_its_trace() -> str:
    from opentelemetry import trace

    return format(trace.get_current_span().get_span_context().trace_id, "032x")


def gives_its_run(run: Run) -> dict[str, Any]:
    return {
        each.name: str(getattr(run, each.name))
        for each in fields(Run)
        if each.name not in ("stopping", "cancelled")
    }


def fails() -> None:
    raise ValueError("it went wrong")


def leaves() -> None:
    sys.exit(3)


def fails_unreadably() -> None:
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
    text = "x" * (50 * 1024 * 1024)
    logging.getLogger("tests.enormous").info(text)
    return [text]


ENDS_OF_CHILDREN = {
    "a value": 1,
    SystemExit(): 0,
    SystemExit(0): 0,
    SystemExit(7): 7,
    SystemExit(-1): 255,
    SystemExit("its last words"): 1,
    LookupError("its error"): 1,
}


def forks_children() -> list[int]:
    """Leave in a forked child too, in each of the ways; return the exit codes of the children."""
    codes = []
    for end in ENDS_OF_CHILDREN:
        child = forking.fork()
        if child == 0:
            sys.stdout.write("printed by a child\n")
            if isinstance(end, BaseException):
                raise end
            return [*codes, -1]
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return codes


def _asynchronous(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        return function(*args, **kwargs)

    return call


for _each in (
    *(gives_value, gives_its_trace, gives_its_run, fails, leaves, fails_unreadably),
    *(fails_enormously, logs_and_gives_enormously, forks_children),
):
    globals()[f"{_each.__name__}_asynchronously"] = _asynchronous(_each)


MEETING = 8
FIVE_MINUTES = timedelta(minutes=5)
_meeting = asyncio.Barrier(MEETING)


async def meets() -> str:
    """Return once so many of them run at the same time; say in which thread."""
    await _meeting.wait()
    return threading.current_thread().name


# --- that return code and have not run it ---


def _yields() -> Iterator[int]:
    note("ran")
    yield 1


def gives_generator() -> Iterator[int]:
    return _yields()


@wraps(_yields)
def decorated() -> Iterator[int]:
    return _yields()


def gives_map() -> Iterator[None]:
    return map(note, ["ran"])


@contextmanager
def is_context_manager() -> Iterator[None]:
    note("ran")
    yield


async def _notes_later() -> None:
    note("ran")


async def gives_coroutine_asynchronously() -> Coroutine[Any, Any, None]:
    return _notes_later()


async def gives_generator_asynchronously() -> Iterator[int]:
    return _yields()


# --- that do to their process what a thread could not outlive ---


def spins() -> None:
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


def leaves_a_fork_behind(run: Run) -> None:
    """Fork a process that holds all that this one has, and ends when it is killed."""
    began = os.fork()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if began:
        logger.warning("leaves one behind")
        note(f"began {os.getpid()} {began}")
    threading.Event().wait(TIMEOUT)
    os._exit(0)


def cleans_up(run: Run) -> None:
    try:
        note("began")
        threading.Event().wait(TIMEOUT)
    finally:
        note("cleaned up")


def crashes() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def exits() -> None:
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
    return len(bytearray(2**33))


def eats_time() -> None:
    while True:
        pass


def prints() -> None:
    """Print to both, from a child too."""
    sys.stdout.write("to stdout\n")
    sys.stdout.flush()
    subprocess.run(["echo", "from a child"], check=True)
    sys.stderr.write("x" * 100_000 + "the end\n")


def leads_a_session() -> bool:
    """Return whether its process can leave neither its group nor its session."""
    return os.getpid() == os.getpgrp() == os.getsid(0)


# --- whose work in the database is atomic with their success ---


def works_atomically(run: Run) -> str:
    User.objects.create(username=f"first of {run.task_name}")
    User.objects.create(username=f"second of {run.task_name}")
    return "done"


def works_and_gives_generator(run: Run) -> Iterator[int]:
    works_atomically(run)
    return _yields()


def works_and_commits_hooks(run: Run) -> str:
    """Do work, with functions for after its commit, of which some fail."""
    transaction.on_commit(partial(note, "first"))
    transaction.on_commit(fails)
    transaction.on_commit(leaves)
    transaction.on_commit(partial(note, "last"))
    return works_atomically(run)


def works_and_fails(run: Run) -> None:
    works_atomically(run)
    raise ValueError("it went wrong")


def works_and_dies(run: Run) -> None:
    works_atomically(run)
    os.kill(os.getpid(), signal.SIGKILL)


def works_and_leaves_a_savepoint(run: Run) -> None:
    transaction.atomic().__enter__()
    works_atomically(run)


def works_until_cancelled(run: Run) -> None:
    works_atomically(run)
    note(f"began {run.id}")
    run.cancelled.wait(TIMEOUT)


def works_until_it_may_go_on(run: Run) -> None:
    works_atomically(run)
    note(f"began {run.id}")
    while "go on" not in Path(os.environ["DDC_TEST_NOTES"]).read_text():
        threading.Event().wait(0.02)


# --- that leave their thread, context and connection altered, and that look for that ---

_variable = ContextVar("variable", default="untouched")
_STATEMENTS = {
    "postgresql": ("SET statement_timeout = 12345", "SET search_path = pg_catalog"),
    "sqlite": ("PRAGMA cache_size = 12345",),
}
_QUESTIONS = {
    "postgresql": ("SHOW statement_timeout", "SHOW search_path"),
    "sqlite": ("PRAGMA cache_size",),
}


def leaves_everything() -> None:
    _leave_in_context()
    _leave_on_connection()


async def leaves_everything_asynchronously() -> None:
    _leave_in_context()
    await sync_to_async(_leave_on_connection)()


def sees() -> dict[str, Any]:
    return {**_of_context(), **_of_connection()}


async def sees_asynchronously() -> dict[str, Any]:
    return {**_of_context(), **await sync_to_async(_of_connection)()}


def _leave_in_context() -> None:
    translation.activate("fr")
    timezone.activate("Asia/Tokyo")
    set_urlconf("tests.nowhere")
    decimal.getcontext().prec = 3
    _variable.set("changed")


def _leave_on_connection() -> None:
    connection.force_debug_cursor = True
    connection.tenant = "t1"  # type: ignore[attr-defined]
    with connection.cursor() as cursor:
        for statement in _STATEMENTS.get(connection.vendor, ()):
            cursor.execute(statement)


def _of_context() -> dict[str, Any]:
    return {
        "language": translation.get_language(),
        "zone": timezone.get_current_timezone_name(),
        "urlconf": get_urlconf(),
        "precision": decimal.getcontext().prec,
        "variable": _variable.get(),
    }


def _of_connection() -> dict[str, Any]:
    found: dict[str, Any] = {
        "debug": connection.force_debug_cursor,
        "tenant": getattr(connection, "tenant", None),
    }
    with connection.cursor() as cursor:
        for question in _QUESTIONS.get(connection.vendor, ()):
            cursor.execute(question)
            found[question] = str(cursor.fetchone()[0])
    return found
