"""Instants that people type."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from django.core.management.base import CommandError

from ... import conf
from ...cron import UnknownZoneError, validate_zone


def add_timezone(parser: ArgumentParser) -> None:
    """Add ``--timezone``, the zone of the reader.

    Args:
        parser: of the subcommand.
    """
    parser.add_argument(
        "--timezone", metavar="Z", help="in which times are shown; TIME_ZONE unless given"
    )


def zone_of(name: str | None) -> ZoneInfo:
    """Return the zone of a name, the project's unless one is given.

    Args:
        name: as typed.

    Raises:
        CommandError: there is no such zone, with exit code 2.
    """
    if name is None:
        return conf.project_zone()
    try:
        return validate_zone(name)
    except UnknownZoneError as error:
        raise CommandError(str(error), returncode=2) from error


def read_instant(option: str, text: str, zone: ZoneInfo | None = None) -> datetime:
    """Read an instant; without an offset it is a local time in a zone.

    Raises:
        CommandError: it is none, with exit code 2 and what to write instead.
    """
    try:
        return _instant(option, text) if zone is None else _as_before(text, zone)
    except (ValueError, OverflowError):
        hint = "write an ISO date and time such as 2030-01-31T07:00 or 2030-01-31T07:00Z"
        raise CommandError(f"{option} {text!r} is no instant: {hint}.", returncode=2) from None


def _as_before(text: str, zone: ZoneInfo) -> datetime:
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
