"""Coroutines: side by side on one loop, beside the threads and not in their place."""

from __future__ import annotations

from collections.abc import Callable

from django_declarative_cron.models import TaskRun

from . import callbacks
from .conftest import HERE, NEVER_TODAY, Bench, eventually


def test_they_wait_for_one_another_on_one_thread_although_there_is_one_worker(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench("thread", WORKERS=1)
    names = [f"t{number}" for number in range(callbacks.MEETING)]
    for name in names:
        bench._changes[name] = {"runner": "thread"}
    tasks = [(name, NEVER_TODAY, f"{HERE}.meets", callbacks.FIVE_MINUTES) for name in names]
    bench.scheduler.initialize([bench.task("held", "until_stopping"), *tasks])
    bench.ask("held", *names)
    bench.heard.wait_for("TaskRunCompleted", len(names))
    results = TaskRun.objects.filter(task_name__in=names).values_list("result", flat=True)
    assert list(results) == ["declarative-cron-asyncio"] * len(names)
    eventually(lambda: bench.load().busy == 1)
