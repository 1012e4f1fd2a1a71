"""One scheduler with real runners, and its tasks as each runner calls them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from django_declarative_cron import Scheduler, conf
from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime.runners import process, registry
from django_declarative_cron.runtime.runners.fork_server_client import Server

from ...database import for_children
from ...timeouts import wait_until
from ..conftest import FIVE_MINUTES, NEVER_TODAY, TIMEOUT, Heard

HERE = "tests.runtime.runners.callbacks"


@dataclass
class Bench:
    """A scheduler whose tasks are all called by one runner."""

    kind: str
    heard: Heard
    ask: Callable[..., None]
    notes: Path
    options: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    _scheduler: Scheduler | None = None

    @property
    def scheduler(self) -> Scheduler:
        if self._scheduler is None:
            self._scheduler = Scheduler(
                options=lambda: replace(conf.options(), **self.options), declare=self._declare
            )
        return self._scheduler

    def _declare(self, given: object) -> list[Any]:
        return [replace(each, **self.changes[each.name]) for each in conf.declarations(given)]

    def task(self, name: str, callback: str, *args: Any, **changes: Any) -> dict[str, Any]:
        """Return an entry, and change its declaration as said."""
        if self.kind == "coroutine":
            callback = f"{callback}_asynchronously"
        if isinstance(changes.get("timeout"), int | float):
            changes["timeout"] = timedelta(seconds=changes["timeout"])
        runner = "thread" if self.kind == "coroutine" else self.kind
        self.changes[name] = {"runner": runner, **changes}
        return {
            "name": name,
            "cron": NEVER_TODAY,
            "callback": f"{HERE}.{callback}",
            "args": list(args),
            "retry_delay": FIVE_MINUTES,
        }

    def start(self, *tasks: dict[str, Any]) -> None:
        """Initialise, and ask for a run of every task."""
        self.scheduler.initialize(list(tasks))
        self.ask(*[task["name"] for task in tasks])

    def run(self, callback: str, *args: Any, **changes: Any) -> TaskRun:
        """Run one callback to its end, and return its row."""
        self.start(self.task("t", callback, *args, **changes))
        return self.ended()

    def run_beyond(self, callback: str) -> TaskRun:
        """Run one callback until its time limit ends it, and return its row.

        The limit is as short as this machine lets the callback begin within it.
        """
        for timeout in (0.5, 2, 8, 32):
            TaskRun.objects.all().delete()
            run = self.run(callback, timeout=timeout)
            if "began" in self.notes.read_text():
                return run
        raise AssertionError(f"{callback} never began")

    def ended(self, name: str = "t") -> TaskRun:
        """Wait for the end of a run, and return its row."""
        rows = TaskRun.objects.filter(task_name=name, finished_at__isnull=False)
        found: TaskRun = eventually(rows.first)
        return found

    def noted(self, text: str, count: int = 1) -> list[str]:
        """Wait for lines that callbacks wrote, and return them."""

        def lines() -> list[str]:
            found = [line for line in self.notes.read_text().splitlines() if text in line]
            return found if len(found) >= count else []

        noted: list[str] = eventually(lines)
        return noted

    def load(self) -> Any:
        (load,) = [each for each in self.scheduler.loads if each.runner == self.kind]
        return load

    def close(self) -> None:
        if self._scheduler is not None:
            self._scheduler.stop(grace=timedelta(seconds=TIMEOUT))


def eventually(look: Callable[[], Any]) -> Any:
    """Wait until something is found, and return it."""
    found: list[Any] = []

    def is_found() -> object:
        found[:] = [look()]
        return found[0]

    wait_until(is_found)
    return found[0]


@pytest.fixture(scope="session")
def _all_notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runners") / "notes.txt"


@pytest.fixture
def notes(_all_notes: Path) -> Path:
    """Give the file that callbacks write to: one for all tests, as they share processes."""
    _all_notes.write_text("")
    return _all_notes


@pytest.fixture
def make_bench(
    transactional_db: None,
    heard: Heard,
    run_now: Callable[..., None],
    notes: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., Bench]]:
    """Make a bench for a runner; it is stopped at the end."""
    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DDC_TEST_NOTES": str(notes),
        **for_children(connection.settings_dict),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    made: list[Bench] = []

    def make(kind: str, **options: Any) -> Bench:
        made.append(Bench(kind, heard, run_now, notes, options))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


@pytest.fixture
def bench(
    request: pytest.FixtureRequest, share_server: None, make_bench: Callable[..., Bench]
) -> Bench:
    """Give a bench for the runner that the test is parametrised with."""
    return make_bench(request.param)


class _Shared(Server):
    """A server that outlives its runners: it takes seconds to start."""

    def close(self) -> None:
        """Stay."""


@pytest.fixture(scope="session")
def _one_server() -> Iterator[Server]:
    server = _Shared()
    yield server
    Server.close(server)


@pytest.fixture
def share_server(_one_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all process runners of the test use one server."""
    monkeypatch.setattr(process, "Server", lambda: _one_server)
    monkeypatch.setattr(registry, "Server", lambda: _one_server)


def descriptors() -> int:
    """Return how many descriptors of this process are open."""
    return len(os.listdir("/dev/fd"))
