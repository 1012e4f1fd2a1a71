"""Common parts, arguments and output of the subcommands of ``manage.py cron``."""

from __future__ import annotations

import getpass
import os
import re
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from django.core.management.base import CommandError

from ... import conf
from ...core.declarations.values import flaw_of_text
from ...cron import UnknownZoneError, validate_zone
from ...exceptions import safe
from ...formatting import EARLIEST, LATEST
from ...runtime.clock import Clock
from ...store.operator_actions import Act
from .terminal import Terminal

Options = Mapping[str, Any]

_LONGEST = 1_000_000_000
_PROGRESS_INTERVAL = 0.3
_DURATION = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,5})h)?(?:(\d{1,5})m(?:in)?)?(?:(\d{1,7})s)?")
_YEARS = f"{EARLIEST.year} to {LATEST.year - 1}"
_FORMS = "2030-01-31, 2030-01-31T07:00 or 2030-01-31T07:00Z"


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


def wrong_use(text: str) -> CommandError:
    """Return the error for wrong use, which has the exit code 2; others have 1."""
    return CommandError(text, returncode=2)


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


# --- arguments ------------------------------------------------------------------


def refuse_unstorable(parser: ArgumentParser) -> None:
    """Refuse bytes that are no text in every argument that has no type of its own."""
    parser.register("type", None, _storable)


def _storable(text: str) -> str:
    flaw = flaw_of_text(text)
    if flaw is not None:
        raise ArgumentTypeError(f"{text!r} {flaw}")
    return text


def add_format(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=["table", "json"],
        default="table",
        help="a table for people (the default), or JSON with times in UTC",
    )


def add_timezone(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--timezone", metavar="Z", help="zone of the times shown; default TIME_ZONE"
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


def whole(text: str, least: int = 1, most: int = 1000) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise ArgumentTypeError(f"{text!r} is not a number from {least} to {most}")
    return int(text)


def seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (value := float(text)) <= _LONGEST:
            return value
    raise ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to {_LONGEST:,}")


def duration(text: str) -> timedelta:
    """Return a duration such as ``90s``, ``30m``, ``2h``, ``1d`` or ``1h30m``."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise ArgumentTypeError(f"{text!r} is not a duration such as 90s, 30m, 2h or 1d")
    days, hours, minutes, rest = (int(each or 0) for each in match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=rest)


# --- times and zones ------------------------------------------------------------


def zone_of(name: str | None) -> ZoneInfo:
    """Return a zone by its name, the project's for ``None``."""
    if name is None:
        return conf.project_zone()
    try:
        return validate_zone(name)
    except UnknownZoneError as error:
        raise wrong_use(str(error)) from error


def day(text: str) -> date:
    """Return a date such as ``2030-01-31``."""
    try:
        given = date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a date such as 2030-01-31") from None
    if not EARLIEST.year <= given.year < LATEST.year:
        raise ArgumentTypeError(f"{text!r} is out of range: write a year from {_YEARS}")
    return given


def read_since(option: str, text: str, now: datetime) -> datetime:
    """Return a past instant, which may be typed as a duration before now, such as ``2h``."""
    try:
        return now - duration(text)
    except (ArgumentTypeError, OverflowError):
        return read_instant(option, text, forms="2h, 2030-01-31 or 2030-01-31T07:00")


def read_instant(
    option: str, text: str, zone: ZoneInfo | None = None, *, forms: str = _FORMS
) -> datetime:
    """Return an instant; without an offset it is a local time of the project's or a given zone."""
    try:
        given = datetime.fromisoformat(text)
        if given.tzinfo is None:
            given = _local(option, text, given, zone)
        given = given.astimezone(UTC)
    except (ValueError, OverflowError):
        raise wrong_use(f"{option} {text!r} is not a time: write {forms}.") from None
    if not EARLIEST <= given < LATEST:
        raise wrong_use(f"{option} {text!r} is out of range: write a year from {_YEARS}.")
    return given


def _local(option: str, text: str, given: datetime, zone: ZoneInfo | None) -> datetime:
    """Return the first pass of a local time of a given zone; the project's must be unique."""
    if zone is not None:
        return given.replace(tzinfo=zone, fold=0)
    zone = conf.project_zone()
    first, second = given.replace(tzinfo=zone, fold=0), given.replace(tzinfo=zone, fold=1)
    if first.utcoffset() != second.utcoffset():
        raise wrong_use(
            f"{option} {text!r} does not exist or exists twice in {zone.key}: "
            f"write it with its offset, such as {second.isoformat()}."
        )
    return first


# --- who acts -------------------------------------------------------------------


def add_author(parser: ArgumentParser) -> None:
    parser.add_argument("--note", default="", help="the reason, for the audit log")
    parser.add_argument(
        "--user", dest="author", metavar="NAME", help="who acts; the system user by default"
    )


def act(options: Options, at: datetime) -> Act:
    """Return the operator, the time and the reason of an action."""
    author = options["author"]
    if author is None:
        author = system_user()
    elif not author.strip():
        raise wrong_use("--user is empty: write a name.")
    if flaw := flaw_of_text(author, one_line=True):
        raise wrong_use(f"--user {flaw}.")
    if flaw := flaw_of_text(options["note"]):
        raise wrong_use(f"--note {flaw}.")
    return Act(author=author, at=at, note=options["note"])


def system_user() -> str:
    """Return the user of this process, which in a container may have a number and no name."""
    try:
        return safe(getpass.getuser())
    except (ImportError, KeyError, OSError):
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
