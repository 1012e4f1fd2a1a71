"""``cron plan``, ``simulate`` and ``snapshot``; ``test_golden.py`` has their words whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.management.cli import deployment_scope, subcommand
from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.testing import ManualClock, Simulation

from ..timezones import PROJECT
from .conftest import DELAY, HERE, START, Cron

Declare = Callable[..., list[Any]]
pytestmark = pytest.mark.django_db


# --- plan ---


def _task(
    name: str, cron: str = "0 7 * * *", job: str = "nothing", delay: timedelta = DELAY
) -> Any:
    return (name, cron, f"{HERE}.{job}", delay)


@pytest.fixture
def changed(db: None, declare: Declare) -> Simulation:
    """A registered set, and another one in the settings."""
    sim = Simulation(START, time_zone=PROJECT)
    registered = [_task("same"), _task("moved"), _task("rewired"), _task("gone")]
    sim.initialize(declare(*registered))
    declare(
        _task("same"),
        _task("moved", "0 8 * * *", delay=timedelta(seconds=90)),
        _task("rewired", job="remember"),
        _task("fresh", "15 6 * * 1"),
    )
    return sim


def test_the_table(cron: Cron, changed: Simulation) -> None:
    answer = cron("plan", clock=changed.clock)
    assert answer.code == 0
    assert answer.lines == [
        "CHANGE        TASK     DETAILS",
        f"+ new         fresh    15 6 * * 1  {PROJECT}",
        "~ overridden  moved    cron: 0 7 * * * → 0 8 * * *, retry_delay: 5 min → 1 min 30 s",
        "- removed     gone",
        f"= preserved   rewired  0 7 * * *  {PROJECT}, changed: callback",
        f"= preserved   same     0 7 * * *  {PROJECT}",
    ]
    assert answer.err.splitlines()[-2:] == [
        "- removed: its history and audit log stay",
        "= preserved: state is kept",
    ]
    data = cron("plan", "--format", "json", clock=changed.clock).data
    assert data["orphaned"] == [{"name": "gone"}]


def test_it_does_what_it_said_when_a_scheduler_starts(
    cron: Cron, changed: Simulation, settings: Any
) -> None:
    changed.initialize(settings.SCHEDULED_TASKS)
    answer = cron("plan", clock=changed.clock)
    assert answer.err.splitlines()[:2] == [
        "0 new, 0 overridden, 4 preserved, 0 removed.",
        "Nothing would change.",
    ]


@pytest.mark.parametrize("form", ["table", "json"])
def test_it_writes_nothing(form: str, cron: Cron, changed: Simulation) -> None:
    with CaptureQueriesContext(connection) as queries:
        cron("plan", "--format", form, clock=changed.clock)
    assert queries.captured_queries
    for query in queries.captured_queries:
        assert query["sql"].lstrip().startswith("SELECT"), query["sql"]


def test_nothing_declared_and_nothing_stored(cron: Cron, declare: Declare) -> None:
    declare()
    assert cron("plan").err.splitlines() == [
        "0 new, 0 overridden, 0 preserved, 0 removed.",
        "Nothing would change.",
    ]


def test_refused_settings_are_told_with_all_mistakes(cron: Cron, declare: Declare) -> None:
    declare(_task("a", "*/5 * * * *"), _task("b", job="nothin"))
    answer = cron("plan")
    assert (answer.code, answer.out) == (2, "")
    first, *mistakes = answer.err.splitlines()
    assert first == "The settings are refused."
    assert [line.partition(": ")[0] for line in mistakes] == [
        "SCHEDULED_TASKS[0] 'a'",
        "SCHEDULED_TASKS[1] 'b'",
    ]
    assert "`nothing` exists" in mistakes[1]


def test_refused_options_are_told(cron: Cron, settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"DEPLOYMEN": "x"}
    answer = cron("plan")
    assert answer.code == 2
    assert "did you mean `DEPLOYMENT`?" in answer.err


def test_another_deployment_has_its_own_plan(
    cron: Cron, changed: Simulation, settings: Any
) -> None:
    settings.DECLARATIVE_CRON = {"DEPLOYMENT": "other"}
    assert cron("plan", clock=changed.clock).err.startswith("4 new")


# --- simulate ---

_COPIED = ("scheduler", "timezone", "registered_at", "callback", "scheduler_identifier")
WEEK = ("--from", "2024-01-01T00:00Z", "--to", "2024-01-08T00:00Z")


def test_what_gaps_take_is_counted(cron: Cron, declare: Declare) -> None:
    keys = {"callback": f"{HERE}.nothing", "retry_delay": DELAY}
    declare({"name": "a", "cron": "30 2 * * *", "timezone": "Europe/Berlin", **keys})
    span = ("--from", "2024-03-30T00:00Z", "--to", "2024-04-02T00:00Z")
    data = cron("simulate", *span, "-n", "1", "--format", "json").data
    assert data == {
        "from": "2024-03-30T00:00:00Z",
        "to": "2024-04-02T00:00:00Z",
        "starts": 2,
        "tasks": [
            {
                "name": "a",
                "origin": "settings",
                "starts": 2,
                "first": "2024-03-30T01:30:00Z",
                "last": "2024-04-01T00:30:00Z",
                "lost": 1,
            }
        ],
        "in_order": [{"at": "2024-03-30T01:30:00Z", "name": "a"}],
    }
    assert "Lost in gaps of the clock: 1 occurrence." in cron("simulate", *span).err


def test_what_is_switched_off_does_not_run(cron: Cron, declare: Declare) -> None:
    keys = {"callback": f"{HERE}.nothing", "retry_delay": DELAY}
    declare({"name": "a", "cron": "* * * * *", "timezone": "UTC", "enabled": False, **keys})
    assert cron("simulate", *WEEK, "--format", "json").data["tasks"] == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--from", "2024-01-02T00:00Z", "--to", "2024-01-01T00:00Z"), "must lie behind"),
        (("--from", "2024-01-02T00:00Z", "--to", "2044-01-01T00:00Z"), "ten years"),
    ],
)
def test_a_span_that_is_none_is_refused(
    cron: Cron, declare: Declare, words: tuple[str, ...], text: str
) -> None:
    declare(a="0 5 * * *")
    answer = cron("simulate", *words)
    assert answer.code == 2
    assert text in answer.err


def test_a_week_of_two_hundred_tasks_is_counted_and_not_gone_through(
    cron: Cron, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(**{f"task-{n}": f"{n % 60} * * * *" if n % 3 else "* * * * *" for n in range(200)})
    asked: Counter[str] = Counter()
    for name in ("next_after", "count_between"):
        monkeypatch.setattr(Schedule, name, _counted(getattr(Schedule, name), asked))
    data = cron("simulate", *WEEK, "--format", "json").data
    assert data["starts"] == 67 * (7 * 24 * 60 + 1) + sum(
        7 * 24 + (n % 60 == 0) for n in range(200) if n % 3
    )
    # However many starts there are, a task costs a few questions.
    assert asked["count_between"] == 200
    assert asked["next_after"] <= 2 * 200


def _counted(method: Any, asked: Counter[str]) -> Any:
    def counted(self: Schedule, *given: Any) -> Any:
        asked[method.__name__] += 1
        return method(self, *given)

    return counted


def test_what_came_over_http_is_simulated_too(
    cron: Cron, declare: Declare, sim: Simulation
) -> None:
    declare(a="0 5 * * *")
    sim.initialize([("a", "0 5 * * *", sim.job(), DELAY)])
    row = ScheduledTask.objects.get(name="a")
    for name, origin, keys in (
        ("posted", "http", {}),
        ("switched-off", "http", {"enabled": False}),
        ("gone-from-settings", "settings", {}),
    ):
        task = ScheduledTask(**{field: getattr(row, field) for field in _COPIED}, **keys)
        task.name, task.origin, task.cron = name, origin, "@every 7h"
        task.declaration = {**row.declaration, "dialect": "ojs"}
        task.save()
    data = cron("simulate", *WEEK, "--format", "json").data
    assert [(each["name"], each["origin"], each["starts"]) for each in data["tasks"]] == [
        ("a", "settings", 7),
        ("posted", "http", 22),
    ]
    # Counted from its registration, which is later than the beginning of the week.
    assert data["tasks"][1]["first"] == "2024-01-01T17:00:30Z"
    assert "@every 7h UTC (over HTTP)" in cron("simulate", *WEEK).out


def test_without_its_tables_the_settings_alone_are_simulated(
    cron: Cron, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(a="0 5 * * *")
    monkeypatch.setattr(deployment_scope, "flaw_of_tables", lambda using: "They are not there yet")
    assert "7 starts of 1 task " in cron("simulate", *WEEK).err


def test_a_terminal_is_told_how_far_it_is(
    cron: Cron, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(a="0 5 * * *", b="0 6 * * *", c="0 7 * * *")
    monkeypatch.setattr(subcommand, "_PROGRESS_INTERVAL", 0)
    assert "2 of 3 tasks" in cron("simulate", *WEEK, is_terminal=True).err
    assert "2 of 3 tasks" not in cron("simulate", *WEEK).err


# --- snapshot ---


def test_a_snapshot_is_written_and_compared(
    cron: Cron, declare: Declare, at_start: ManualClock, tmp_path: Path
) -> None:
    path = tmp_path / "schedule.txt"
    declare(yearly="0 3 2 1 *")
    answer = cron("snapshot", str(path), clock=at_start)
    assert answer.out == f"{path} has the runs of every task in the year from 2024-01-01 on.\n"
    assert "    2024-01  Tue 2  03:00\n" in path.read_text()
    assert cron("snapshot", str(path), "--check").out == f"The schedule is as in {path}.\n"
    declare(yearly="0 4 2 1 *")
    answer = cron("snapshot", str(path), "--check")
    assert answer.code == 1
    hint = f"`python manage.py cron snapshot {path}` writes it anew."
    assert answer.err == f"The schedule differs from {path}. {hint}"
    assert answer.lines[2:] == [
        f"-yearly: 0 3 2 1 *  {PROJECT}  tests.management.callbacks.nothing",
        "-yearly: 2024-01  Tue 2  03:00",
        f"+yearly: 0 4 2 1 *  {PROJECT}  tests.management.callbacks.nothing",
        "+yearly: 2024-01  Tue 2  04:00",
    ]


def test_the_first_day_of_a_snapshot_can_be_named(
    cron: Cron, declare: Declare, still_clock: None, tmp_path: Path
) -> None:
    path = tmp_path / "schedule.txt"
    declare(yearly="0 3 2 1 *")
    assert cron("snapshot", str(path), "--from", "2027-01-03").code == 0
    assert "    2028-01  Sun 2  03:00\n" in path.read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("soon", "is not a date such as 2030-01-31"),
        ("9999-12-31", "is out of range: write a year from 1900 to 8999"),
        ("0001-01-01", "is out of range: write a year from 1900 to 8999"),
    ],
)
def test_a_first_day_that_is_none_is_refused(cron: Cron, text: str, said: str) -> None:
    answer = cron("snapshot", "schedule.txt", "--from", text)
    assert answer.err.endswith(f"argument --from: {text!r} {said}")


def test_files_that_are_no_snapshots_are_told(
    cron: Cron, declare: Declare, still_clock: None, tmp_path: Path
) -> None:
    declare(yearly="0 3 2 1 *")
    nowhere, other = tmp_path / "nowhere" / "a.txt", tmp_path / "b.txt"
    other.write_text("hello")
    for words, said in [
        ((str(nowhere),), "cannot be written"),
        ((str(nowhere), "--check"), "cannot be read"),
        ((str(other), "--check"), "is not a snapshot of a schedule."),
    ]:
        answer = cron("snapshot", *words)
        assert (answer.code, said in answer.err) == (1, True)
    assert other.read_text() == "hello"


def test_programs_are_told_what_has_changed(
    cron: Cron, declare: Declare, at_start: ManualClock, tmp_path: Path
) -> None:
    path = tmp_path / "schedule.txt"
    declare(yearly="0 3 2 1 *")
    words = (str(path), "--format", "json")
    kept = {"file": str(path), "from": "2024-01-01"}
    assert cron("snapshot", *words, clock=at_start).data == {**kept, "written": True}
    assert cron("snapshot", "--check", *words).data == {**kept, "same": True, "changes": []}
    declare(yearly="0 4 2 1 *")
    answer = cron("snapshot", "--check", *words)
    assert (answer.code, answer.data["same"]) == (1, False)
    assert answer.data["changes"][3] == "-yearly: 2024-01  Tue 2  03:00"
