"""Crontabs of a user, or of the system with a user in each line."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError

from ..cron.zones import UnknownZoneError, validate_zone
from .calls import SHELL
from .cron_fields import AS_CRON_DOES, MACROS, either_day
from .result import (
    NO_RETRY,
    Difference,
    ImportedTask,
    ImportResult,
    UntranslatableError,
    named,
)
from .shell_commands import command_keys
from .sources import Request, unreadable

GENERAL: Final = (
    *AS_CRON_DOES,
    Difference(
        "environment", "runs have the environment and the user of runscheduler, not those of cron"
    ),
)

_LONGEST_LINE: Final = 10_000
"""Ten times the limit of cron itself; the expressions below would take long for more."""

_OF_SYSTEM: Final = ("/etc/crontab", "/etc/cron.d")
_SH: Final = "/bin/sh"
_FIELD: Final = re.compile(r"[0-9*?,/LW#-]+")
_USERS: Final = frozenset(
    ("root", "www-data", "nobody", "daemon", "postgres", "mysql", "nginx", "apache", "ubuntu")
)
_SETTING: Final = re.compile(r"\s*[\"']?([A-Za-z_][A-Za-z0-9_]*)[\"']?\s*=\s*(.*?)\s*")
_LINE: Final = re.compile(r"\s*(@\w+|(?:\S+\s+){4}\S+)\s+(.*?)\s*")


def read(request: Request) -> ImportResult:
    """Read a crontab.

    Raises:
        CommandError: there is none, with exit code 2.
    """
    if not request.source:
        text = "Name a file, or pipe it in: `crontab -l | python manage.py cron import crontab -`."
        raise CommandError(text, returncode=2)
    with_users = request.with_users or request.source.startswith(_OF_SYSTEM)
    about = Difference("zone", f"its times are read in {request.zone}; --timezone names another")
    tasks, settings = convert(_text(request.source), request.zone, with_users=with_users)
    source = "standard input" if request.source == "-" else request.source
    return ImportResult("crontab", source, tasks, (about, *GENERAL, *settings))


def _text(source: str) -> str:
    if source == "-":
        return sys.stdin.read()
    try:
        return Path(source).read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        raise CommandError(f"{source!r} cannot be read: {error}", returncode=2) from error


def convert(
    text: str, zone: str, *, with_users: bool = False
) -> tuple[tuple[ImportedTask, ...], tuple[Difference, ...]]:
    """Return the tasks of a crontab, and the differences that its settings make for all."""
    settings: list[Difference] = []
    return named(_lines(text, zone, with_users, settings)), tuple(settings)


def _lines(
    text: str, zone: str, with_users: bool, settings: list[Difference]
) -> Iterator[ImportedTask]:
    shell = _SH
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if len(line) > _LONGEST_LINE:
            reason = f"it has {len(line):,} characters: that is no line of a crontab"
            yield ImportedTask(f"line {number}", None).refused(reason)
            continue
        setting = _SETTING.fullmatch(line)
        if setting is None or line.lstrip().startswith(("*", "@")):
            yield _guarded(line, number, zone, with_users, shell)
        elif setting[1] == "SHELL":
            shell = setting[2].strip("\"'")
        elif setting[1] == "CRON_TZ":
            zone = setting[2].strip("\"'")
        else:
            settings.append(_setting(setting[1], line.strip()))


def _setting(name: str, line: str) -> Difference:
    if name == "MAILTO":
        return Difference("output", f"`{line}`: nothing is mailed; what a run prints is kept")
    return Difference("environment", f"`{line}`: set it for runscheduler, or in the command")


def _guarded(line: str, number: int, zone: str, with_users: bool, shell: str) -> ImportedTask:
    """Read a line; an unreadable one is listed, and the others are read."""
    try:
        return _line(line, number, zone, with_users, shell)
    except (Exception, RecursionError, MemoryError) as error:
        return unreadable(f"line {number}", error)


def _line(line: str, number: int, zone: str, with_users: bool, shell: str) -> ImportedTask:
    match = _LINE.fullmatch(line)
    if match is None:
        return ImportedTask(f"line {number}", None).refused(
            f"`{line.strip()}` is no line of a crontab"
        )
    when, command, users = match[1], match[2], []
    if with_users:
        user, *rest = command.split(maxsplit=1)
        command = rest[0] if rest else ""
        users.append(Difference("environment", f"ran as {user}"))
    flaw = _flaw_of_command(command, with_users)
    if flaw:
        return ImportedTask(f"line {number}", None).refused(f"`{line.strip()}` {flaw}")
    keys, calls = command_keys(_percent(command.strip()))
    if keys.get("callback") == SHELL and shell != _SH:
        keys["args"][0] = f"{shell} -c {shlex.quote(keys['args'][0])}"
        calls.append(Difference("callback", f"`{shell}` runs it, because SHELL named it"))
    was = _name_of(keys, command)
    try:
        cron, days = _when(when)
        keys_of_zone = _zone(zone)
    except UntranslatableError as error:
        return ImportedTask(was, None).refused(f"{error} (line {number})")
    options = {**keys.pop("options", {}), "retry": dict(NO_RETRY)}
    overlap = keys.pop("overlap_policy", "allow")
    entry = {"cron": cron, **keys_of_zone, **keys, "overlap_policy": overlap, "catch_up_window": 0}
    entry["options"] = options
    return ImportedTask(was, entry, (*days, *users, *calls))


def _flaw_of_command(command: str, with_users: bool) -> str:
    """Return why the text after the times is hardly a command, empty if it may be one."""
    first, *rest = command.split(maxsplit=1)[:2] or [""]
    if not first:
        return "has no command"
    if _FIELD.fullmatch(first):
        return f"has more than five fields of times, or `{first}` is no command: cron has five"
    if not with_users and rest and first in _USERS:
        return f"has `{first}` before the command, as lines of a system crontab have: add --system"
    return ""


def _when(text: str) -> tuple[str, list[Difference]]:
    if text.lower() == "@reboot":
        reason = "it ran at the start of the machine; call it in the start of the project instead"
        raise UntranslatableError(reason)
    if text.startswith("@") and text.lower() not in MACROS:
        raise UntranslatableError(f"`{text}` is no time that is known here")
    return either_day(text, star_is_and=True)


def _zone(name: str) -> dict[str, Any]:
    try:
        return {"timezone": validate_zone(name).key}
    except UnknownZoneError:
        raise UntranslatableError(f"CRON_TZ={name} is no IANA time zone") from None


def _percent(command: str) -> str:
    """Replace per cent signs: the first ends the command, the others end lines of its input."""
    pieces = re.split(r"(?<!\\)%", command)
    return "\n".join(piece.replace("\\%", "%") for piece in pieces)


def _name_of(keys: dict[str, Any], command: str) -> str:
    if keys.get("command"):
        return str(keys["command"][0])
    words = [word for word in re.split(r"[\s;&|]+", command) if word and "=" not in word]
    heads = [word for word in words if word not in ("cd", "sudo", "bash", "sh", "test", "[", "-x")]
    return (heads[0] if heads else command).rstrip("/").rpartition("/")[2].partition(".")[0]
