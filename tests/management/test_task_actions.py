"""``cron pause``, ``resume``, ``skip`` and ``retry``."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.management.cli import audit
from django_declarative_cron.models import ScheduledTask, TaskOverride
from django_declarative_cron.testing import Simulation

from ..timezones import local_time
from .conftest import DELAY, Cron

YEARLY = "0 0 1 1 *"


@pytest.fixture
def ready(sim: Simulation) -> Simulation:
    """Two hourly tasks; one has failed at eleven and waits for its retry."""
    failing = sim.job(outcomes=["fail"])
    sim.initialize(
        [
            ("a", "0 * * * *", sim.job(), DELAY),
            ("b", "0 * * * *", failing, timedelta(minutes=30)),
        ]
    )
    sim.advance_to("2024-01-01T11:10:00Z")
    return sim


def _acts() -> list[tuple[Any, ...]]:
    fields = ("task_name", "kind", "author", "note", "until", "created_at")
    return list(TaskOverride.objects.order_by("id").values_list(*fields))


def test_a_pause_is_kept_with_its_author_note_and_end(cron: Cron, ready: Simulation) -> None:
    answer = cron(
        *("pause", "a", "b", "--until", "2024-01-02T07:00Z"),
        *("--note", "inventory", "--user", "Grace"),
        clock=ready.clock,
    )
    assert (answer.code, answer.err) == (0, "")
    shown = local_time("2024-01-02 07:00")
    assert answer.lines == [
        f"Paused until {shown}: a, b",
        f"'a' runs next at {shown}.",
        f"'b' runs next at {shown}.",
    ]
    until = datetime(2024, 1, 2, 7, tzinfo=UTC)
    assert _acts() == [
        ("a", "pause", "Grace", "inventory", until, ready.now),
        ("b", "pause", "Grace", "inventory", until, ready.now),
    ]
    assert ready.task("a").paused_until == until


def test_a_pause_without_an_end(cron: Cron, ready: Simulation) -> None:
    assert cron("pause", "a", "a", clock=ready.clock).out == "Paused until resumed: a\n"
    assert ready.task("a").next_run_at is None


def test_resume_tells_who_was_not_paused(cron: Cron, ready: Simulation) -> None:
    cron("pause", "a", clock=ready.clock)
    answer = cron("resume", "b", "a", clock=ready.clock)
    assert (answer.code, answer.lines) == (0, ["Resumed: a", "'b' was not paused."])
    assert ready.task("a").paused_since is None


def test_clear_retry_tells_who_had_none(cron: Cron, ready: Simulation) -> None:
    answer = cron("clear-retry", "a", "b", "--note", "mended", clock=ready.clock)
    assert (answer.code, answer.lines) == (
        0,
        ["Retry cleared: b", "'a' had no retry pending."],
    )
    assert ready.task("b").pending_retry_until is None
    assert [act[:2] for act in _acts()] == [("b", "clear_retry")]


def test_the_author_is_the_user_of_this_process(
    cron: Cron, ready: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    cron("pause", "a", clock=ready.clock)
    assert TaskOverride.objects.get().author == "ada"


@pytest.mark.parametrize("error", [KeyError("uid not found"), OSError("no user"), ImportError()])
def test_a_container_may_have_no_user(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> str:
        raise error

    monkeypatch.setattr(getpass, "getuser", refuse)
    monkeypatch.setattr("os.getuid", lambda: 4711)
    assert audit.system_user() == "uid 4711"


def test_a_hostile_environment_names_nobody_unprintable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "a\nb\udcff")
    assert audit.system_user() == "a\\nb\\udcff"


@pytest.mark.parametrize("act", ["pause", "resume", "clear-retry"])
def test_an_unknown_name_stops_everything(act: str, cron: Cron, ready: Simulation) -> None:
    answer = cron(act, "b", "aa", clock=ready.clock)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "No task is called 'aa'. Did you mean 'a'?"
    assert _acts() == []


def test_a_name_that_no_database_stores_is_unknown(cron: Cron, ready: Simulation) -> None:
    answer = cron("pause", "\udcff\0", clock=ready.clock)
    assert answer.code == 2
    assert "`python manage.py cron list` shows all names." in answer.err


def test_a_declared_task_that_is_not_registered_yet(
    cron: Cron, declare: Callable[..., list[Any]], sim: Simulation
) -> None:
    declare(t=YEARLY)
    answer = cron("pause", "t", clock=sim.clock)
    assert answer.code == 1
    assert "The task 't' is declared, but no scheduler has registered it yet." in answer.err
    assert "`python manage.py runscheduler`" in answer.err


@pytest.mark.parametrize("act", ["pause", "resume", "clear-retry"])
def test_a_damaged_row_is_told(act: str, cron: Cron, ready: Simulation) -> None:
    ScheduledTask.objects.filter(name="a").update(cron="nonsense")
    answer = cron(act, "a", clock=ready.clock)
    assert answer.code == 1
    assert answer.err.startswith("'a' is damaged: Invalid cron expression")


def test_a_local_end_is_in_the_projects_zone(cron: Cron, ready: Simulation, settings: Any) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    answer = cron("pause", "a", "--until", "2024-06-01 07:00", clock=ready.clock)
    assert answer.lines == [
        "Paused until 2024-06-01 07:00 CEST: a",
        "'a' runs next at 2024-06-01 07:00 CEST.",
    ]


BAD_ENDS = [
    ("tomorrow", "is not a time: write 2030-01-31, 2030-01-31T07:00 or 2030-01-31T07:00Z"),
    ("", "is not a time"),
    ("0001-01-01T00:00+14:00", "is not a time"),
    ("9999-12-31T23:59:59Z", "is out of range: write a year from 1900 to 8999."),
    ("2024-01-01T11:10:00Z", "is in the past: it was 2024-01-01T11:10:00Z"),
    ("2023-12-31", "is in the past"),
    ("2024-03-31T02:30", "does not exist or exists twice in Europe/Berlin"),
    ("2024-10-27T02:30", "write it with its offset, such as 2024-10-27T02:30:00+01:00"),
]


@pytest.mark.parametrize(("until", "why"), BAD_ENDS)
def test_an_end_that_is_none_is_refused(
    until: str, why: str, cron: Cron, ready: Simulation, settings: Any
) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    answer = cron("pause", "a", "--until", until, clock=ready.clock)
    assert answer.code == 2
    assert why in answer.err
    assert _acts() == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--user", " "), "--user is empty"),
        (("--user", "a\nb"), "--user must not contain control characters"),
        (("--note", "\0"), "--note must not contain characters that cannot be stored"),
    ],
)
def test_texts_that_cannot_be_stored_are_refused(
    words: tuple[str, ...], why: str, cron: Cron, ready: Simulation
) -> None:
    answer = cron("pause", "a", *words, clock=ready.clock)
    assert answer.code == 2
    assert why in answer.err


def test_mistakes_in_the_settings_keep_nobody_from_pausing(
    cron: Cron, ready: Simulation, settings: Any
) -> None:
    settings.SCHEDULED_TASKS = [("broken",)]
    assert cron("pause", "a", clock=ready.clock).code == 0


def test_a_pause_may_have_a_length(cron: Cron, ready: Simulation) -> None:
    answer = cron("pause", "a", "--for", "1h30m", clock=ready.clock)
    until = ready.now + timedelta(minutes=90)
    assert answer.lines[0] == f"Paused until {local_time('2024-01-01 12:40')}: a"
    assert ready.task("a").paused_until == until


@pytest.mark.parametrize("text", ["", "h", "2", "2w", "2h-1m", "2h 3", "PT2H"])
def test_a_length_that_is_none(text: str, cron: Cron, ready: Simulation) -> None:
    answer = cron("pause", "a", f"--for={text}", clock=ready.clock)
    assert f"{text!r} is not a duration such as 90s, 30m, 2h or 1d" in answer.err
    assert _acts() == []


@pytest.mark.parametrize("text", ["0s", "0d0h"])
def test_a_pause_without_length_is_refused(text: str, cron: Cron, ready: Simulation) -> None:
    answer = cron("pause", "a", "--for", text, clock=ready.clock)
    assert (answer.code, answer.err) == (2, "--for must be longer than zero, such as 2h.")
    assert _acts() == []


def test_a_pause_has_one_end(cron: Cron, ready: Simulation) -> None:
    words = ("pause", "a", "--for", "2h", "--until", "2030-01-01T00:00Z")
    assert "not allowed with argument" in cron(*words, clock=ready.clock).err


def test_retry_now_asks_the_scheduler_for_a_run(cron: Cron, ready: Simulation) -> None:
    answer = cron("retry", "b", "--now", "--note", "fixed", clock=ready.clock)
    assert (answer.code, answer.out) == (0, "Retry requested: b\n")
    assert ready.task("b").run_requested_at == ready.now
    ready.poll()
    assert ready.starts("b")[-1] == ready.now


def test_retry_now_needs_a_pending_retry(cron: Cron, ready: Simulation) -> None:
    answer = cron("retry", "a", "b", "--now", clock=ready.clock)
    assert (answer.code, answer.out) == (1, "Retry requested: b\n")
    assert answer.err == "'a' has no retry pending; `cron run` runs it."


def test_all_tasks_at_once(cron: Cron, ready: Simulation) -> None:
    assert cron("retry", "--all", "--now", clock=ready.clock).out == "Retry requested: b\n"
    assert cron("pause", "--all", clock=ready.clock).out == "Paused until resumed: a, b\n"
    assert cron("resume", "--all", clock=ready.clock).out == "Resumed: a, b\n"
    assert cron("resume", "--all", clock=ready.clock).out == ""
    assert "not allowed with argument" in cron("pause", "a", "--all").err


def test_the_tasks_of_a_tag(cron: Cron, sim: Simulation) -> None:
    entry = {"cron": YEARLY, "callback": "tests.management.callbacks.nothing"}
    tags = {"a": ["x"], "b": ["x", "y"], "c": []}
    sim.initialize([{"name": name, **entry, "tags": found} for name, found in tags.items()])
    assert cron("skip", "--tag", "x", clock=sim.clock).out == "Next run skipped: a, b\n"
    answer = cron("skip", "--tag", "z", clock=sim.clock)
    assert (answer.code, answer.err) == (1, "No task has the tag 'z'. Tags in use: x, y.")
    assert "Did you mean 'y'?" in cron("skip", "--tag", "yy", clock=sim.clock).err
