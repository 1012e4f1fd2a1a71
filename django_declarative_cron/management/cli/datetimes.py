"""Parse instants, durations and zones from the command line."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.core.management.base import CommandError

from ... import conf
from ...cron import UnknownZoneError, validate_zone
from ...formatting import EARLIEST, LATEST

_DURATION = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,5})h)?(?:(\d{1,5})m(?:in)?)?(?:(\d{1,7})s)?")
_FORMS = "2030-01-31, 2030-01-31T07:00 or 2030-01-31T07:00Z"


def add_timezone(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--timezone", metavar="Z", help="zone of the times shown; default TIME_ZONE"
    )


def zone_of(name: str | None) -> ZoneInfo:
    """Return a zone by its name, the project's for ``None``.

    Raises:
        CommandError: there is no such zone, with exit code 2.
    """
    if name is None:
        return conf.project_zone()
    try:
        return validate_zone(name)
    except UnknownZoneError as error:
        raise CommandError(str(error), returncode=2) from error


def duration(text: str) -> timedelta:
    """Return a duration such as ``90s``, ``30m``, ``2h``, ``1d`` or ``1h30m``."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise ArgumentTypeError(f"{text!r} is not a duration such as 90s, 30m, 2h or 1d")
    days, hours, minutes, seconds = (int(each or 0) for each in match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def read_since(option: str, text: str, now: datetime) -> datetime:
    """Return a past instant, which may be typed as a duration before now, such as ``2h``.

    Raises:
        CommandError: the text is neither, with exit code 2.
    """
    try:
        return now - duration(text)
    except (ArgumentTypeError, OverflowError):
        return read_instant(option, text, forms="2h, 2030-01-31 or 2030-01-31T07:00")


def read_instant(
    option: str, text: str, zone: ZoneInfo | None = None, *, forms: str = _FORMS
) -> datetime:
    """Return an instant; without an offset it is a local time of the project's or a given zone.

    Raises:
        CommandError: the text is no instant, with exit code 2 and the accepted forms.
    """
    try:
        given = _instant(option, text) if zone is None else _first_pass(text, zone)
    except (ValueError, OverflowError):
        message = f"{option} {text!r} is not a time: write {forms}."
        raise CommandError(message, returncode=2) from None
    if not EARLIEST <= given < LATEST:
        years = f"{EARLIEST.year} to {LATEST.year - 1}"
        message = f"{option} {text!r} is out of range: write a year from {years}."
        raise CommandError(message, returncode=2)
    return given


def _first_pass(text: str, zone: ZoneInfo) -> datetime:
    given = datetime.fromisoformat(text)
    local = given if given.tzinfo is not None else given.replace(tzinfo=zone, fold=0)
    return local.astimezone(UTC)


def _instant(option: str, text: str) -> datetime:
    given = datetime.fromisoformat(text)
    if given.tzinfo is not None:
        return given.astimezone(UTC)
    zone = conf.project_zone()
    first, second = given.replace(tzinfo=zone, fold=0), given.replace(tzinfo=zone, fold=1)
    if first.utcoffset() != second.utcoffset():
        raise CommandError(
            f"{option} {text!r} does not exist or exists twice in {zone.key}: "
            f"write it with its offset, such as {second.isoformat()}.",
            returncode=2,
        )
    return first.astimezone(UTC)
