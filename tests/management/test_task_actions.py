"""``cron pause``, ``resume``, ``skip``, ``retry``, ``clear-retry`` and ``cancel``.

``test_golden.py`` has their words whole; what the actions do is shown in ``tests/scenarios``.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError

from django_declarative_cron.management.cli import subcommand
from django_declarative_cron.models import ScheduledTask, TaskOverride, TaskRun
from django_declarative_cron.testing import Simulation

from ..timezones import local_time
from .conftest import DELAY, Cron

YEARLY = "0 0 1 1 *"


@pytest.fixture
def ready(sim: Simulation) -> Simulation:
    """Two hourly tasks; ``b`` has failed at eleven and waits for its retry."""
    failing = ("b", "0 * * * *", sim.job(outcomes=["fail"]), timedelta(minutes=30))
    sim.initialize([("a", "0 * * * *", sim.job(), DELAY), failing])
    sim.advance_to("2024-01-01T11:10:00Z")
    return sim


def _acts() -> list[tuple[Any, ...]]:
    fields = ("task_name", "kind", "author", "note", "until", "created_at")
    return list(TaskOverride.objects.order_by("id").values_list(*fields))


@pytest.mark.parametrize(
    ("words", "kind", "note"),
    [
        ("pause b b", "pause", "mended"),
        ("pause b --for 1h30m", "pause", "mended"),
        ("resume b a", "resume", "mended"),
        ("skip b", "skip", "mended"),
        ("skip b --undo", "unskip", "mended"),
        ("retry b --now", "run", "Retried at once: mended"),
        ("retry b --clear", "clear_retry", "mended"),
        ("clear-retry b", "clear_retry", "mended"),
    ],
)
def test_each_command_is_one_action_of_its_author_with_a_note(
    cron: Cron, ready: Simulation, words: str, kind: str, note: str
) -> None:
    if kind == "resume":
        cron("pause", "b", clock=ready.clock)
    if kind == "unskip":
        cron("skip", "b", clock=ready.clock)
    TaskOverride.objects.all().delete()
    answer = cron(*words.split(), "--note", "mended", "--user", "Grace", clock=ready.clock)
    assert (answer.code, answer.err) == (0, "")
    until = {"pause b --for 1h30m": datetime(2024, 1, 1, 12, 40, tzinfo=UTC)}
    until["skip b"] = datetime(2024, 1, 1, 12, tzinfo=UTC)
    assert _acts() == [("b", kind, "Grace", note, until.get(words), ready.now)]


def test_a_pause_is_kept_with_its_end(cron: Cron, ready: Simulation) -> None:
    answer = cron("pause", "a", "b", "--until", "2024-01-02T07:00Z", clock=ready.clock)
    shown = local_time("2024-01-02 07:00")
    assert answer.lines == [
        f"Paused until {shown}: a, b",
        f"'a' runs next at {shown}.",
        f"'b' runs next at {shown}.",
    ]
    until = datetime(2024, 1, 2, 7, tzinfo=UTC)
    assert [act[4] for act in _acts()] == [until, until]
    assert ready.task("a").paused_until == until


def test_the_author_is_the_user_of_this_process(
    cron: Cron, ready: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    cron("pause", "a", clock=ready.clock)
    assert TaskOverride.objects.get().author == "ada"
    # A hostile environment names nobody unprintable.
    monkeypatch.setattr(getpass, "getuser", lambda: "a\nb\udcff")
    assert subcommand.system_user() == "a\\nb\\udcff"


@pytest.mark.parametrize("error", [KeyError("uid not found"), OSError("no user"), ImportError()])
def test_a_container_may_have_no_user(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> str:
        raise error

    monkeypatch.setattr(getpass, "getuser", refuse)
    monkeypatch.setattr("os.getuid", lambda: 4711)
    assert subcommand.system_user() == "uid 4711"


@pytest.mark.parametrize("act", ["pause", "cancel"])
def test_an_unknown_name_stops_everything(act: str, cron: Cron, ready: Simulation) -> None:
    answer = cron(act, "b", "aa", clock=ready.clock)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "No task is called 'aa'. Did you mean 'a'?"
    assert _acts() == []
    shown = "No task is called 'zzz'. `python manage.py cron list` shows all names."
    assert cron(act, "zzz", clock=ready.clock).err == shown


@pytest.mark.parametrize("act", ["pause", "cancel"])
def test_a_removed_task_says_when_it_was_removed(act: str, cron: Cron, ready: Simulation) -> None:
    ready.initialize([])
    answer = cron(act, "a", clock=ready.clock)
    assert (answer.code, answer.err) == (
        1,
        f"The task 'a' was removed at {local_time('2024-01-01 11:10')}. "
        "`python manage.py cron history a` shows its runs.",
    )


def test_a_declared_task_that_is_not_registered_yet(
    cron: Cron, declare: Callable[..., list[Any]], sim: Simulation
) -> None:
    declare(t=YEARLY)
    for words in (["pause", "t"], ["run", "t"]):
        answer = cron(*words, clock=sim.clock)
        assert (answer.code, answer.out, answer.err) == (
            1,
            "",
            "The task 't' is declared, but no scheduler has registered it yet. Start a scheduler "
            "with `python manage.py runscheduler`: it registers what is declared.",
        )


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


UNTIL = [
    ("tomorrow", "is not a time: write 2030-01-31, 2030-01-31T07:00 or 2030-01-31T07:00Z"),
    ("", "is not a time"),
    ("0001-01-01T00:00+14:00", "is not a time"),
    ("9999-12-31T23:59:59Z", "is out of range: write a year from 1900 to 8999."),
    ("2024-01-01T11:10:00Z", "is in the past: it was 2024-01-01T11:10:00Z"),
    ("2023-12-31", "is in the past"),
    ("2024-03-31T02:30", "does not exist or exists twice in Europe/Berlin"),
    ("2024-10-27T02:30", "write it with its offset, such as 2024-10-27T02:30:00+01:00"),
]
WRONG_USE = [
    *((("--until", text), 2, why) for text, why in UNTIL),
    *(((f"--for={text}",), 2, "--for must be longer than zero") for text in ("0s", "0d0h")),
    # A parser's refusal has the code 1 within a process, and ends a process with 2.
    *(
        ((f"--for={text}",), 1, f"{text!r} is not a duration such as 90s, 30m, 2h or 1d")
        for text in ("", "h", "2", "2w", "2h-1m", "2h 3", "PT2H")
    ),
    (("--for", "2h", "--until", "2030-01-01T00:00Z"), 1, "not allowed with argument"),
    (("--all",), 1, "not allowed with argument"),
    (("--user", " "), 2, "--user is empty"),
    (("--user", "a\nb"), 2, "--user must not contain control characters"),
]


@pytest.mark.parametrize(("words", "code", "why"), WRONG_USE)
def test_wrong_use_is_refused_and_changes_nothing(
    words: tuple[str, ...], code: int, why: str, cron: Cron, ready: Simulation, settings: Any
) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    answer = cron("pause", "a", *words, clock=ready.clock)
    assert (answer.code, why in answer.err) == (code, True), answer.err
    assert _acts() == []


def test_mistakes_in_the_settings_keep_nobody_from_pausing(
    cron: Cron, ready: Simulation, settings: Any
) -> None:
    settings.SCHEDULED_TASKS = [("broken",)]
    assert cron("pause", "a", clock=ready.clock).code == 0


def test_of_several_names_those_without_a_retry_are_told(cron: Cron, ready: Simulation) -> None:
    answer = cron("retry", "a", "b", "--now", clock=ready.clock)
    assert (answer.code, answer.out) == (1, "Retry requested: b\n")
    assert answer.err == "'a' has no retry pending; `cron run` runs it."


def test_all_tasks_at_once(cron: Cron, ready: Simulation) -> None:
    assert cron("retry", "--all", "--now", clock=ready.clock).out == "Retry requested: b\n"
    assert cron("pause", "--all", clock=ready.clock).out == "Paused until resumed: a, b\n"
    assert cron("resume", "--all", clock=ready.clock).out == "Resumed: a, b\n"
    assert cron("resume", "--all", clock=ready.clock).out == ""


def test_the_tasks_of_a_tag(cron: Cron, sim: Simulation) -> None:
    entry = {"cron": YEARLY, "callback": "tests.management.callbacks.nothing"}
    tags = {"a": ["x"], "b": ["x", "y"], "c": []}
    sim.initialize([{"name": name, **entry, "tags": found} for name, found in tags.items()])
    assert cron("skip", "--tag", "x", clock=sim.clock).out == "Next run skipped: a, b\n"
    answer = cron("skip", "--tag", "z", clock=sim.clock)
    assert (answer.code, answer.err) == (1, "No task has the tag 'z'. Tags in use: x, y.")
    assert "Did you mean 'y'?" in cron("skip", "--tag", "yy", clock=sim.clock).err


def test_a_run_that_is_skipped_already_is_told(cron: Cron, ready: Simulation) -> None:
    cron("skip", "a", clock=ready.clock)
    answer = cron("skip", "a", clock=ready.clock)
    said = f"'a' skips its run of {local_time('2024-01-01 12:00')} already: one at a time."
    assert (answer.code, answer.lines) == (0, [said])
    assert cron("skip", "a", "--undo", clock=ready.clock).lines == ["Next run no longer skipped: a"]


def test_a_run_in_progress_is_asked_to_end_once(cron: Cron, sim: Simulation) -> None:
    job = sim.job(duration=timedelta(minutes=30))
    sim.initialize([("a", "0 * * * *", job, DELAY), ("b", YEARLY, sim.job(), DELAY)])
    sim.advance_to("2024-01-01T11:10:00Z")
    answer = cron("cancel", "a", "--user", "gardener", "--note", "too long", clock=sim.clock)
    assert (answer.code, answer.out) == (0, "1 run asked to end: a\n")
    assert TaskRun.objects.get(outcome="running").cancel_requested_at == sim.now
    assert [act[:4] for act in _acts()] == [("a", "cancel", "gardener", "too long")]
    with pytest.raises(CommandError, match="--note "):
        # Keywords of call_command pass no parser.
        subcommand.act({"author": "Ada", "note": "\0"}, sim.now)
    answer = cron("cancel", "a", clock=sim.clock)
    assert (answer.code, answer.out) == (0, "Asked before, or over by now: a\n")
    assert len(_acts()) == 1
    answer = cron("cancel", "a", "b", clock=sim.clock)
    assert (answer.code, answer.err) == (1, "No run in progress: b")


def test_runs_that_wait_behind_another_end_and_never_begin(cron: Cron, sim: Simulation) -> None:
    job = sim.job(duration=timedelta(minutes=150))
    entry = {"name": "a", "cron": "0 * * * *", "callback": job, "overlap_policy": "enqueue"}
    sim.initialize([entry])
    sim.advance_to("2024-01-01T12:10:00Z")
    runs = TaskRun.objects.order_by("pk").values_list("outcome", flat=True)
    assert list(runs) == ["running", "waiting", "waiting"]
    answer = cron("cancel", "a", "--user", "gardener", clock=sim.clock)
    assert answer.out == "1 run asked to end: a\n2 waiting runs ended: a\n"
    assert [act[:4] for act in _acts()] == [("a", "cancel", "gardener", "")] * 3
    assert list(runs.all()) == ["running", "cancelled", "cancelled"]
    sim.advance_to("2024-01-01T13:50:00Z")
    assert list(runs.all()) == ["cancelled"] * 3 + ["running"]
