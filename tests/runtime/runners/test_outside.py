"""Text that came over HTTP: in no process is anything imported for it (CRON-04)."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from django_declarative_cron import callables, conf, handlers
from django_declarative_cron.callables import Targets
from django_declarative_cron.core.declarations.declaration import Target
from django_declarative_cron.core.declarations.problems import UnresolvableError
from django_declarative_cron.models import Origin
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.runtime.context import Run
from django_declarative_cron.runtime.runners import django_tasks_worker, fork_server, process
from django_declarative_cron.runtime.work import Work

PATH = "spilled.leak"


@pytest.fixture(autouse=True)
def spilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let there be a module that a dotted path leads into."""
    (tmp_path / "spilled.py").write_text("def leak(): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("spilled", None)


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> Target:
    """Give what a scheduler that has the type makes of it; other processes do not have it."""
    with monkeypatch.context() as here:
        here.setattr(handlers, "find", {PATH: print}.get)
        declaration, problems = conf.posted({"name": "a", "cron": "0 * * * *", "type": PATH})
    assert declaration is not None, problems
    return declaration.target


def ordered(target: Target) -> tuple[Work, dict[str, Any]]:
    now = system_clock.now()
    run = Run("a", now, now, 1, "due", "UTC", threading.Event(), threading.Event())
    work = Work(1, run, target, lambda result: None)
    return work, json.loads(json.dumps(process._order(work, {})))


def test_a_process_of_a_run_imports_nothing_for_it(posted: Target) -> None:
    work, order = ordered(posted)
    result = fork_server._called(order, work)
    assert not result.succeeded
    assert "is not a registered type" in result.error
    assert "spilled" not in sys.modules


def test_a_server_of_processes_loads_nothing_for_it(posted: Target) -> None:
    assert list(process._loaded([posted])) == []
    assert list(process._loaded([Targets().type(PATH)])) == [PATH]


def taken(origin: str) -> Any:
    data = {"callback": PATH, "command": False, "args": []}
    return SimpleNamespace(task=SimpleNamespace(origin=origin, declaration=data))


def test_a_worker_of_an_engine_imports_nothing_for_it() -> None:
    with pytest.raises(UnresolvableError, match="is not a registered type"):
        django_tasks_worker._target(taken(Origin.HTTP))
    assert "spilled" not in sys.modules
    assert (
        django_tasks_worker._target(taken(Origin.SETTINGS)).function is sys.modules["spilled"].leak
    )


def test_no_command_is_found_for_it() -> None:
    with pytest.raises(UnresolvableError, match="cannot be said from outside"):
        callables.again("check", is_command=True, is_from_outside=True)


def test_paths_of_settings_are_imported_in_the_process_of_a_run() -> None:
    _, order = ordered(Target(PATH, cast(Any, None)))
    found = callables.again(
        order["callback"], is_command=order["command"], is_from_outside=order["outside"]
    )
    assert found.function is sys.modules["spilled"].leak
