"""What a callback does to what it was given is its own affair."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from django_declarative_cron import Run

from .conftest import Started, utc


def test_each_run_is_given_what_was_declared(simulation: Started) -> None:
    given: list[Any] = []

    def take(rows: list[Any], run: Run) -> None:
        given.append(deepcopy((run.task_name, rows, run.meta["of"])))
        rows.append({"more": 1})
        run.meta["of"].append("this run")

    said = {"callback": take, "args": [[{"id": 7}]], "options": {"meta": {"of": ["all"]}}}
    # Alike, so that they are read as one.
    tasks = [{"name": name, "cron": "0 * * * *", **said} for name in ("a", "b")]
    before = deepcopy([(each["args"], each["options"]) for each in tasks])
    sim = simulation("10:30:00")
    sim.initialize(tasks)
    sim.advance_to(utc("12:30"))
    assert sorted(name for name, *_ in given) == ["a", "a", "b", "b"]
    assert [each[1:] for each in given] == [([{"id": 7}], ["all"])] * 4
    assert [(each["args"], each["options"]) for each in tasks] == before
