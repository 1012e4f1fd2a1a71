"""``cron snapshot``: a year of the schedule in a file, for review."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import date
from pathlib import Path

from django.core.management.base import CommandError

from ... import conf
from ...core.schedule_snapshot import difference, first_day, yearbook
from ...exceptions import CalendarError
from .deployment_scope import declared
from .subcommand import Context, Options, Subcommand, add_format, day


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file, such as schedule.txt")
    parser.add_argument(
        "--from",
        dest="begin",
        metavar="DATE",
        type=day,
        help="first day in the file; default that of this month",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing, and exit with 1 if the file differs"
    )
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    file, is_json = Path(options["file"]), options["format"] == "json"
    if options["check"]:
        _compare(context, file, is_json)
        return
    today = context.clock.now().astimezone(conf.project_zone()).date()
    text = _present(options["begin"] or today.replace(day=1))
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {_reason(error)}.") from error
    if is_json:
        context.terminal.data({"file": str(file), "from": _iso(text), "written": True})
    else:
        text = f"{file} has the runs of every task in the year from {first_day(text)} on."
        context.terminal.lines(text)


def _compare(context: Context, file: Path, is_json: bool) -> None:
    try:
        kept = file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise CommandError(f"{file} cannot be read: {_reason(error)}.") from error
    first = first_day(kept)
    if first is None:
        raise CommandError(f"{file} is not a snapshot of a schedule.")
    present = _present(first)
    changes = [] if kept == present else difference(kept, present, file.name)
    if is_json:
        same = {"file": str(file), "from": _iso(kept), "same": kept == present}
        context.terminal.data({**same, "changes": changes})
    elif kept == present:
        context.terminal.lines(f"The schedule is as in {file}.")
    else:
        context.terminal.lines("\n".join(changes))
    if kept != present:
        hint = f"`python manage.py cron snapshot {file}` writes it anew."
        raise CommandError(f"The schedule differs from {file}. {hint}")


def _reason(error: Exception) -> str:
    """Return the words of an error without its number."""
    return getattr(error, "strerror", None) or str(error)


def _iso(text: str) -> str | None:
    first = first_day(text)
    return None if first is None else first.isoformat()


def _present(first: date) -> str:
    try:
        return yearbook(declared(), first)
    except CalendarError as error:
        raise CommandError(f"A calendar does not answer: {error}") from error


SNAPSHOT = Subcommand(
    "snapshot", "write the dates of a year to a file, for review", _arguments, _answer
)
