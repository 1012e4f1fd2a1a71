"""How ``cron`` looks on terminals, in pipes and in poor encodings; how it refuses; its tables."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management.base import CommandError, CommandParser, OutputWrapper
from django.core.management.color import no_style

from django_declarative_cron.management.cli.terminal import Cell, Terminal, columns, table, wrap
from django_declarative_cron.management.commands import runscheduler
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


@pytest.mark.parametrize(
    ("words", "is_terminal", "variable", "coloured"),
    [
        ((), True, None, True),
        ((), False, None, False),
        (("--force-color",), False, None, True),
        (("--no-color",), True, None, False),
        ((), True, "1", False),
        ((), True, "0", False),
        ((), True, "", True),
        (("--force-color",), False, "1", True),
    ],
)
def test_colours_are_for_terminals_unless_something_else_is_asked_for(
    cron: Cron,
    shown: Simulation,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    is_terminal: bool,
    variable: str | None,
    coloured: bool,
) -> None:
    if variable is not None:
        monkeypatch.setenv("NO_COLOR", variable)
    answer = cron("list", *words, clock=shown.clock, is_terminal=is_terminal)
    assert (ESCAPE in answer.out) is coloured


def test_json_is_never_coloured(cron: Cron, shown: Simulation) -> None:
    answer = cron("list", "--format", "json", "--force-color", clock=shown.clock)
    assert ESCAPE not in answer.out
    assert answer.data["tasks"][0]["status"] == "retrying"


@pytest.mark.parametrize(("found", "width"), [(120, 120), (20, 40)])
def test_a_terminal_gives_its_width(
    found: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = os.terminal_size((found, 24))
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
    ([], "name a subcommand\n\neveryday subcommands:\n  list  "),
    (["--no-color"], "the following arguments are required: SUBCOMMAND"),
    (["lst"], "invalid choice: 'lst'"),
    (["list", "--format", "yaml"], "invalid choice: 'yaml'"),
    (["next", "* * * * *", "-n", "0"], "'0' is not a number from 1 to 1000"),
    (["pause"], "one of the arguments NAME --all --tag is required"),
    (["retry", "b"], "one of the arguments --now --clear is required"),
]


@pytest.mark.parametrize(("words", "why"), WRONG_USE, ids=lambda value: " ".join(value)[:20])
def test_wrong_use_says_what_is_wrong(words: list[str], why: str, cron: Cron) -> None:
    assert why in cron(*words).err


@pytest.mark.parametrize(
    ("word", "hint"),
    [("lst", "did you mean `list`?"), ("frobnicate", "`cron --help` lists them")],
)
def test_a_misspelt_subcommand_has_a_hint(
    word: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        Command().run_from_argv(["manage.py", "cron", word, "--help"])
    assert left.value.code == 2
    assert capsys.readouterr().err.endswith(f"no subcommand is called '{word}': {hint}\n")


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


def _arguments() -> Iterator[tuple[CommandParser, list[str]]]:
    """Give for each argument that takes a text the words before it."""
    yield runscheduler.Command().create_parser("manage.py", "runscheduler"), ["--health-host"]
    yield runscheduler.Command().create_parser("manage.py", "runscheduler"), ["--metrics-host"]
    parser: Any = Command().create_parser("manage.py", "cron")
    (found,) = (each for each in parser._actions if each.dest == "subcommand")
    for name, subparser in found.choices.items():
        before = [name]
        for action in subparser._actions:
            if action.dest in ("verbosity", "settings", "pythonpath") or action.nargs == 0:
                continue
            yield parser, [*before, *action.option_strings[-1:]]
            if not action.option_strings:
                before.append(next(iter(action.choices or ["x"])))


@pytest.mark.parametrize(
    ("parser", "words"),
    [pytest.param(*each, id=" ".join(each[1])) for each in _arguments()],
)
def test_bytes_that_are_no_text_are_refused_in_every_argument(
    parser: CommandParser, words: list[str]
) -> None:
    for text in ("\udcff", "a\0"):
        with pytest.raises(CommandError) as refused:
            parser.parse_args([*words, text])
        assert str(refused.value).isprintable()
        assert "argument " in str(refused.value)


def test_the_documented_completion_has_all_subcommands() -> None:
    page = (CHECKOUT / "docs" / "commands.md").read_text(encoding="utf-8")
    (words,) = re.findall(r'compgen -W "([^"]+)"', page)
    assert words.split() == list(SUBCOMMANDS)


# --- tables ---


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 5, [""]),
        ("a b", 5, ["a b"]),
        ("one two three", 7, ["one two", "three"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("ab cdefgh", 4, ["ab", "cdef", "gh"]),
        ("a  b", 5, ["a  b"]),
        ("名前名前", 4, ["名前", "名前"]),
        ("e\u0301e\u0301e\u0301", 2, ["e\u0301e\u0301", "e\u0301"]),
    ],
)
def test_texts_are_wrapped_and_never_cut(text: str, width: int, lines: list[str]) -> None:
    assert wrap(text, width) == lines
    assert all(columns(line) <= width for line in lines)


def test_the_widest_column_gives_way() -> None:
    row = [Cell(("short",)), Cell(("a rather long text",)), Cell(("1", "2", "3"))]
    assert table([row], 20) == [
        "short  a rather    1",
        "       long text   2",
        "                   3",
    ]


def test_wide_signs_keep_columns_straight() -> None:
    rows = [[Cell(("名前",)), Cell(("x",))], [Cell(("abcd",)), Cell(("y",))]]
    assert table(rows, 80) == ["名前  x", "abcd  y"]


def test_colour_takes_no_columns() -> None:
    rows = [[Cell(("a",), lambda text: f"<{text}>"), Cell(("x",))], [Cell(("abc",)), Cell(("y",))]]
    assert table(rows, 80) == ["<a>    x", "abc  y"]


def test_no_rows_are_no_lines() -> None:
    assert table([], 80) == []
