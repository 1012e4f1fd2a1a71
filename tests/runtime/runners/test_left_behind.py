"""Whatever a run leaves in its thread, context or connection reaches no other run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from django_declarative_cron.models import TaskRun

from . import leaving
from .conftest import FIVE_MINUTES, NEVER_TODAY, Bench

CLEAN = 65


def _task(bench: Bench, name: str, callback: str) -> dict[str, Any]:
    is_async = bench.kind == "coroutine"
    bench._changes[name] = {"runner": "thread" if is_async else bench.kind}
    suffix = "_asynchronously" if is_async else ""
    return {
        "name": name,
        "cron": NEVER_TODAY,
        "callback": f"tests.runtime.runners.leaving.{callback}{suffix}",
        "retry_delay": FIVE_MINUTES,
    }


@pytest.mark.parametrize("kind", ["thread", "coroutine", "process"])
@pytest.mark.parametrize("longest", [0, None])
def test_runs_beside_one_that_leaves_everything_see_nothing_of_it(
    share_server: None,
    make_bench: Callable[..., Bench],
    kind: str,
    longest: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = make_bench(kind, WORKERS=3)
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", longest)
    expected = leaving.sees()
    dirty = [f"dirty-{number}" for number in range(3)]
    clean = [f"clean-{number}" for number in range(CLEAN)]
    bench.scheduler.initialize(
        [
            *(_task(bench, each, "leaves_everything") for each in dirty),
            *(_task(bench, each, "sees") for each in clean),
        ]
    )
    bench.ask(*dirty)
    bench.heard.wait_for("TaskRunCompleted", len(dirty))
    bench.ask(*dirty, *clean)
    bench.heard.wait_for("TaskRunCompleted", 2 * len(dirty) + CLEAN)
    found = list(TaskRun.objects.filter(task_name__in=clean).values_list("result", flat=True))
    assert found == [expected] * CLEAN
