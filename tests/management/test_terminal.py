"""How ``cron`` looks on terminals, in pipes and in poor encodings; and how it refuses."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management.base import OutputWrapper
from django.core.management.color import no_style

from django_declarative_cron.management.cli.table import Cell
from django_declarative_cron.management.cli.terminal import Terminal
from django_declarative_cron.management.commands.cron import SUBCOMMANDS, Command
from django_declarative_cron.testing import Simulation

from ..conftest import CHECKOUT
from .conftest import DELAY, Cron, run_child

ESCAPE = "\x1b["
pytestmark = pytest.mark.django_db


@pytest.fixture
def shown(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """A task in colour, for a terminal that has colours."""
    sim.initialize([("t", "0 * * * *", sim.job(outcomes=["fail"]), DELAY)])
    sim.advance_to("2024-01-01T11:01:00Z")
    monkeypatch.setattr("django.core.management.color.supports_color", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("DJANGO_COLORS", raising=False)
    return sim


def test_a_terminal_sees_colours(cron: Cron, shown: Simulation) -> None:
    assert ESCAPE in cron("list", clock=shown.clock, is_terminal=True).out


def test_a_pipe_sees_none(cron: Cron, shown: Simulation) -> None:
    assert ESCAPE not in cron("list", clock=shown.clock).out


def test_a_pipe_may_ask_for_them(cron: Cron, shown: Simulation) -> None:
    assert ESCAPE in cron("list", "--force-color", clock=shown.clock).out


def test_no_color_is_heard_behind_the_subcommand(cron: Cron, shown: Simulation) -> None:
    answer = cron("list", "--no-color", clock=shown.clock, is_terminal=True)
    assert ESCAPE not in answer.out


@pytest.mark.parametrize(("value", "coloured"), [("1", False), ("0", False), ("", True)])
def test_the_variable_no_color_is_heard(
    value: str, coloured: bool, cron: Cron, shown: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", value)
    answer = cron("list", clock=shown.clock, is_terminal=True)
    assert (ESCAPE in answer.out) is coloured


def test_force_color_outdoes_the_variable(
    cron: Cron, shown: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert ESCAPE in cron("list", "--force-color", clock=shown.clock).out


def test_json_is_never_coloured(cron: Cron, shown: Simulation) -> None:
    answer = cron("list", "--format", "json", "--force-color", clock=shown.clock)
    assert ESCAPE not in answer.out
    assert answer.data["tasks"][0]["status"] == "retrying"


@pytest.mark.parametrize(("columns", "width"), [(120, 120), (20, 40)])
def test_a_terminal_gives_its_width(
    columns: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = os.terminal_size((columns, 24))
    monkeypatch.setattr("shutil.get_terminal_size", lambda fallback: size)
    out = OutputWrapper(io.StringIO())
    monkeypatch.setattr(OutputWrapper, "isatty", lambda self: True)
    assert Terminal(out, out, no_style()).width == width


def test_a_sign_that_an_encoding_lacks_is_no_traceback() -> None:
    raw = io.BytesIO()
    out = OutputWrapper(io.TextIOWrapper(raw, encoding="ascii"))
    Terminal(out, out, no_style()).say("● active")
    assert raw.getvalue() == b"? active\n"


WRONG_USE = [
    ([], "the following arguments are required: SUBCOMMAND"),
    (["lst"], "invalid choice: 'lst'"),
    (["list", "--format", "yaml"], "invalid choice: 'yaml'"),
    (["next", "* * * * *", "-n", "0"], "'0' is no number from 1 to 1000"),
    (["pause"], "one of the arguments NAME --all --tag is required"),
]


@pytest.mark.parametrize(("words", "why"), WRONG_USE, ids=lambda value: " ".join(value)[:20])
def test_wrong_use_says_what_is_wrong(words: list[str], why: str, cron: Cron) -> None:
    assert why in cron(*words).err


@pytest.mark.slow
def test_a_child_is_told_options_of_django_behind_the_subcommand(
    project_environment: dict[str, str],
) -> None:
    child = run_child(
        *("cron", "next", "0 7 * * *", "--settings", "tests.management.child_settings"),
        *("--no-color", "-v", "0", "--traceback", "-n", "1"),
        env=project_environment,
    )
    assert (child.returncode, child.stderr) == (0, "")


@pytest.mark.slow
def test_a_reader_that_has_left_is_no_error(project_environment: dict[str, str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    child = subprocess.run(
        [sys.executable, "-m", "django", "cron", "next", "0 7 * * *"],
        env=project_environment,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert (child.returncode, child.stderr) == (0, "")


@pytest.mark.slow
def test_wrong_use_of_a_child_is_2(project_environment: dict[str, str]) -> None:
    child = run_child("cron", "pause", env=project_environment)
    assert child.returncode == 2
    assert child.stderr.startswith("usage: ")


def test_every_reader_answers_machines(
    cron: Cron, declare: Callable[..., list[Any]], sim: Simulation
) -> None:
    sim.initialize(declare(t="0 * * * *"))
    for words in ("list",), ("plan",), ("next", "t"):
        assert cron(*words, "--format", "json", clock=sim.clock).data


def test_texts_of_data_cannot_change_a_terminal(
    cron: Cron, sim: Simulation, still_clock: None
) -> None:
    hostile = "a\x1b[31m\u202eb"
    out = OutputWrapper(io.StringIO())
    terminal = Terminal(out, out, no_style())
    terminal.say(hostile)
    terminal.lines(hostile)
    terminal.warn(hostile)
    terminal.table([[Cell((hostile,))]])
    assert out.getvalue() == "a\\x1b[31m\\u202eb\n" * 4
    for words in (["next", hostile], ["show", hostile], ["explain", hostile], ["pause", hostile]):
        answer = cron(*words, clock=sim.clock)
        assert answer.code
        said = (answer.out + answer.err).replace("\n", "")
        assert said.isprintable(), words


@pytest.mark.parametrize(
    "words",
    [
        *(["health", "--max-age", text] for text in ("nan", "1e999", "-1", "9" * 400)),
        *(["outbox", "-n", text] for text in ("-1", "0", "9" * 400)),
        *(["history", text] for text in ("\0", "\ud800", "")),
        *(["import", "crontab", text] for text in ("\0", "\ud800")),
    ],
    ids=ascii,
)
def test_nonsense_is_wrong_use_and_no_traceback(
    cron: Cron, sim: Simulation, words: list[str]
) -> None:
    answer = cron(*words, clock=sim.clock)
    # A parser's refusal has the code 1 within a process, and ends a process with 2.
    assert answer.code in (1, 2)
    assert not set("\0\ud800") & set(answer.out + answer.err)


HELP = """\
everyday subcommands:
  list         show every task: overdue first, then by next run
  show         show everything about one task
  next         show when a task or an expression runs next
  history      show runs, and why occurrences had none
  run          run a task now, in the foreground
  pause        pause tasks: nothing runs until resumed, or for a time
  resume       end pauses; occurrences under them do not run
  skip         skip the next occurrence; the one after it runs
  retry        start pending retries now, or clear them
  cancel       cancel runs that are in progress or waiting
  health       check whether a scheduler is running
  plan         preview the changes of a start of the scheduler

advanced:
  explain      explain why a task did or does not run
  clear-retry  clear pending retries; the next occurrence runs
  backfill     run occurrences of the past, one by one, in the foreground
  simulate     count the occurrences in a time span
  snapshot     write the dates of a year to a file, for review
  prune        delete old history, in small batches
  outbox       show events that wait for delivery
  notify       test notifications, and report that no scheduler is running
  metrics      print metrics for Prometheus, a dashboard or alert rules
  token        create, list and revoke tokens of the HTTP API
  verify       check the stored history against the axioms
  import       write the tasks of another scheduler as SCHEDULED_TASKS
"""


def test_the_help_has_everyday_and_advanced_subcommands() -> None:
    shown = Command().create_parser("manage.py", "cron").format_help()
    assert HELP in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_the_documented_completion_has_all_subcommands() -> None:
    page = (CHECKOUT / "docs" / "commands.md").read_text(encoding="utf-8")
    (words,) = re.findall(r'compgen -W "([^"]+)"', page)
    assert words.split() == list(SUBCOMMANDS)
