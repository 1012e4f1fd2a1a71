"""What one subcommand of ``manage.py cron`` is."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...runtime.clock import Clock
from .terminal import Terminal

Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Context:
    """What a subcommand works with.

    Args:
        terminal: where it answers.
        clock: what it calls the time.
        is_alone: the process was started for this command and has no other life.
    """

    terminal: Terminal
    clock: Clock
    is_alone: bool = False


@dataclass(frozen=True, slots=True)
class Subcommand:
    """One subcommand.

    Args:
        name: as it is typed.
        help: one line for people.
        arguments: adds its arguments to its parser.
        answer: does what it is there for; raises ``CommandError`` where the exit code is not 0.
    """

    name: str
    help: str
    arguments: Callable[[ArgumentParser], None]
    answer: Callable[[Context, Options], None]


def add_format(parser: ArgumentParser) -> None:
    """Let a reader be asked for machines."""
    parser.add_argument(
        "--format",
        choices=["table", "json"],
        default="table",
        help="a table for people (the default), or JSON with times in UTC",
    )
