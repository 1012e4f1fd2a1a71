"""The parts that all subcommands of ``manage.py cron`` have in common."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ...runtime.clock import Clock
from .terminal import Terminal

Options = Mapping[str, Any]

_MOST = 1000
_PROGRESS_INTERVAL = 0.3


@dataclass(frozen=True, slots=True)
class Context:
    """The output, the clock, and whether the process was started for this command alone."""

    terminal: Terminal
    clock: Clock
    is_alone: bool = False


@dataclass(frozen=True, slots=True)
class Subcommand:
    """One subcommand: its name, its help, and the functions that add arguments and answer."""

    name: str
    help: str
    arguments: Callable[[ArgumentParser], None]
    answer: Callable[[Context, Options], None]


class Report(Protocol):
    """The result of a command, for programs and for people."""

    def as_dict(self) -> Any: ...

    def render(self, terminal: Terminal) -> None: ...


def write(context: Context, options: Options, report: Report) -> None:
    """Write a report in the requested format."""
    if options["format"] == "json":
        context.terminal.data(report.as_dict())
    else:
        report.render(context.terminal)


def attributes(row: object, *names: str) -> dict[str, Any]:
    """Return attributes of a row by their names."""
    return {name: getattr(row, name) for name in names}


class Progress:
    """Shows on a terminal how far long work is, a few times a second."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._shown_at = context.clock.monotonic()

    def show(self, text: str) -> None:
        now = self._context.clock.monotonic()
        if now - self._shown_at >= _PROGRESS_INTERVAL:
            self._shown_at = now
            self._context.terminal.progress(text)


def add_format(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=["table", "json"],
        default="table",
        help="a table for people (the default), or JSON with times in UTC",
    )


def add_choice(
    parser: ArgumentParser, flag: str, words: Iterable[str], text: str, *, is_repeatable: bool
) -> None:
    """Add an option whose words are typed with hyphens; spaces and underscores do too."""
    choices = [each.replace("_", "-") for each in words]
    parser.add_argument(
        flag,
        action="append" if is_repeatable else "store",
        type=lambda given: given.strip().replace("_", "-").replace(" ", "-"),
        choices=choices,
        metavar=flag.strip("-").upper(),
        help=f"{text}: {', '.join(choices)}{'; repeatable' if is_repeatable else ''}",
    )


def amount(text: str, most: int = _MOST) -> int:
    """Return a number of things, from 1 on."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= most):
        raise ArgumentTypeError(f"{text!r} is not a number from 1 to {most}")
    return int(text)
