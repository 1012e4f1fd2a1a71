"""The benchmarks still work: each part in its smallest size, the product and the bare limit."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from benchmarks.harness import parts, project
from benchmarks.harness.contenders import CONTENDERS
from benchmarks.harness.parts import Case, Sample
from benchmarks.harness.serving import case
from benchmarks.lateness import DUE
from django_declarative_cron.models import ScheduledTask, SchedulerInstance, TaskOverride, TaskRun
from tests.conftest import CHECKOUT
from tests.timeouts import TIMEOUT


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Iterable[Callable[..., Case]]:
    """Get a contender of a part ready, with the test's database for its own."""
    begun: list[Case] = []
    # The caches of this process are not the benchmark's to empty.
    monkeypatch.setattr("benchmarks.startup.deploying.as_new", nullcontext)
    monkeypatch.setattr("gc.collect", lambda: 0)
    if connection.vendor == "postgresql":
        where = connection.get_connection_params()
        names = ("dbname", "user", "password", "host", "port")
        kept = {name: where[name] for name in names if name in where}
        monkeypatch.setenv(project.DATABASE, json.dumps(kept))

    def ready(part: str, contender: str, size: int) -> Case:
        begun.append(case(part, contender))
        begun[-1].prepare(size)
        return begun[-1]

    yield ready
    for each in begun:
        each.close()


def measured(found: Case) -> dict[str, Sample]:
    return {sample.figure: sample for sample in found.measure()}


def all_right(samples: Iterable[Sample]) -> bool:
    return all(sample.right == sample.of for sample in samples)


@pytest.mark.parametrize("contender", ["product", "limit"])
def test_cron_walks_and_agrees_with_the_oracle(begin: Any, contender: str) -> None:
    samples = measured(begin("cron", contender, 3))
    names = {figure.name for figure in parts.part("cron").figures}
    assert names - set(samples) <= (
        {"parse again", "next, OJS dialect"} if contender == "limit" else set()
    )
    assert all(sample.value > 0 for sample in samples.values())
    assert all_right(samples.values())


@pytest.mark.django_db(transaction=True)
def test_startup_writes_one_row_for_one_change(begin: Any) -> None:
    samples = measured(begin("startup", "product", 4))
    assert samples["first registration"].right == samples["restart, unchanged"].right == 4
    assert samples["rows written for it"].value == 1


@pytest.mark.django_db(transaction=True)
def test_a_pass_starts_and_records_what_is_due(begin: Any) -> None:
    samples = measured(begin("tick", "product", 12))
    assert samples["idle"].statements == 1
    assert (samples["10 due, in all"].right, samples["10 due, in all"].of) == (10, 10)


@pytest.mark.django_db(transaction=True)
def test_the_runs_that_are_counted_are_recorded(begin: Any) -> None:
    sample = measured(begin("throughput", "product", 3))["recorded runs"]
    assert (sample.right, sample.of) == (3, 3)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("part", ["startup", "tick", "throughput"])
def test_the_bare_limit_does_the_work_too(begin: Any, part: str) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("the bare limit needs PostgreSQL")
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS task, run")
    samples = measured(begin(part, "limit", 12))
    assert samples
    assert all_right(samples.values())
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS task, run")


@pytest.mark.django_db(transaction=True)
def test_a_scheduler_that_waits_for_the_minute_begins_and_ends(begin: Any) -> None:
    waiting: Any = begin("lateness", "product", 11)
    waiting.begin()
    # What is new and named by the present minute runs at once.
    deadline = time.monotonic() + TIMEOUT
    while len(waiting.called(0.0)) < DUE:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    waiting.end()
    assert not SchedulerInstance.objects.filter(stopped_at=None).exists()


@pytest.mark.django_db(transaction=True)
def test_an_edit_pauses_and_resumes_a_task_that_is_never_due(begin: Any) -> None:
    acting: Any = begin("edits", "product", 11)
    acting.begin()
    acting.edit(acting.names[10], pause=True)
    acting.edit(acting.names[10], pause=False)
    acting.end()
    done = TaskOverride.objects.filter(task_name=acting.names[10]).order_by("pk")
    assert list(done.values_list("kind", flat=True)) == ["pause", "resume"]


@pytest.mark.django_db(transaction=True)
def test_memory_is_compared_over_runs_that_are_recorded(begin: Any) -> None:
    sample = measured(begin("growth", "product", 3))["growth"]
    assert (sample.right, sample.of) == (3, 3)


@pytest.mark.django_db(transaction=True)
def test_a_long_history_is_written_that_is_older_than_it_is_kept(
    begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("the history is written by PostgreSQL")
    monkeypatch.setattr("benchmarks.pruning.product.TASKS", 11)
    begin("pruning", "product", 33)
    old = datetime.now(UTC) - timedelta(days=90)
    assert TaskRun.objects.filter(finished_at__lt=old).count() == 33


@pytest.mark.parametrize("contender", ["thread", "coroutine", "limit"])
def test_a_runner_calls_one_run_after_the_other_and_many(begin: Any, contender: str) -> None:
    samples = measured(begin("runners", contender, 5))
    assert samples["start"].right == samples["runs, ten at a time"].right == 5


@pytest.mark.django_db(transaction=True)
def test_many_tasks_are_registered_again_and_looked_at(begin: Any, monkeypatch: Any) -> None:
    from benchmarks.million.product import Case as Million

    # A child of the tests would leave their database with them.
    monkeypatch.setattr(Million, "prepare", lambda self, size: setattr(self, "names", ["a", "b"]))
    million: Any = begin("million", "product", 2)
    million.restart()
    million._scheduler.stop()
    million._took = 1.5
    samples = measured(million)
    assert (samples["registration"].right, samples["idle"].statements) == (2, 1)
    assert samples["memory"].value > 1


@pytest.mark.django_db(transaction=True)
def test_coroutines_of_the_minute_before_end_while_others_begin(
    begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: Any = begin("writing", "product", 20)
    waiting.begin()
    assert waiting._minute > time.time()
    declared = {task.name: task.cron for task in ScheduledTask.objects.all()}
    waiting.end()
    crons = [declared[name] for name in waiting.names]
    assert crons == ["* * * * *"] * 10 + ["30 * * * * *"] * 9 + ["0 0 29 2 *"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_every_page_is_fetched(begin: Any) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("the history is written by PostgreSQL")
    samples = measured(begin("pages", "product", 20))
    assert set(samples) == {figure.name for figure in parts.part("pages").figures}
    assert all_right(samples.values())
    assert TaskRun.objects.count() == 20 * 20


@pytest.mark.parametrize("name", parts.NAMES)
def test_every_contender_of_a_part_is_there(name: str) -> None:
    part = parts.part(name)
    folder = CHECKOUT / "benchmarks" / name
    assert {contender for contender, _ in part.caps} <= set(part.contenders)
    for contender in part.contenders:
        assert contender in CONTENDERS
        assert (folder / f"{contender.removesuffix('_sqlite')}.py").is_file()


def test_every_part_has_its_command_in_the_readme_and_its_place_on_the_page() -> None:
    readme = (CHECKOUT / "benchmarks" / "README.md").read_text()
    page = (CHECKOUT / "docs" / "speed.md").read_text()
    for name in parts.NAMES:
        assert f"`python -m benchmarks {name}`" in readme
        assert f"<!-- results of {name} -->" in page
        assert f"<!-- end of {name} -->" in page
        assert importlib.import_module(f"benchmarks.{name}").PART.name == name
