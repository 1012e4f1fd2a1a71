"""Crontabs of a user, or of the system with a user in each line."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from django.core.management.base import CommandError

from ..cron.zones import UnknownZoneError, validate_zone
from .cron_fields import MACROS, either_day
from .result import (
    AS_CRON_DOES,
    NO_RETRY,
    Difference,
    ImportedTask,
    ImportResult,
    UntranslatableError,
)
from .shell_commands import SH, add_command
from .sources import Request

GENERAL: Final = (
    *AS_CRON_DOES,
    Difference(
        "environment", "runs have the environment and the user of runscheduler, not those of cron"
    ),
)

_LONGEST_LINE: Final = 10_000
"""Ten times the limit of cron itself; the expressions below would take long for more."""

_OF_SYSTEM: Final = ("/etc/crontab", "/etc/cron.d")
_FIELD: Final = re.compile(r"[0-9*?,/LW#-]+")
_USERS: Final = frozenset(
    ("root", "www-data", "nobody", "daemon", "postgres", "mysql", "nginx", "apache", "ubuntu")
)
_SETTING: Final = re.compile(r"\s*[\"']?([A-Za-z_][A-Za-z0-9_]*)[\"']?\s*=\s*(.*?)\s*")
_LINE: Final = re.compile(r"\s*(@\w+|(?:\S+\s+){4}\S+)\s+(.*?)\s*")


def read(request: Request) -> ImportResult:
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
) -> tuple[list[ImportedTask], list[Difference]]:
    """Return the tasks of a crontab, and the differences that its settings make for all."""
    tasks: list[ImportedTask] = []
    settings: list[Difference] = []
    shell = SH
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        setting = _SETTING.fullmatch(line) if len(line) <= _LONGEST_LINE else None
        if setting is None or line.lstrip().startswith(("*", "@")):
            task = ImportedTask(f"line {number}")
            with task.refusing():
                _add_line(task, line, zone, with_users, shell)
            tasks.append(task)
        elif setting[1] == "SHELL":
            shell = setting[2].strip("\"'")
        elif setting[1] == "CRON_TZ":
            zone = setting[2].strip("\"'")
        else:
            settings.append(_setting(setting[1], line.strip()))
    return tasks, settings


def _setting(name: str, line: str) -> Difference:
    if name == "MAILTO":
        return Difference("output", f"`{line}`: nothing is mailed; what a run prints is kept")
    return Difference("environment", f"`{line}`: set it for runscheduler, or in the command")


def _add_line(task: ImportedTask, line: str, zone: str, with_users: bool, shell: str) -> None:
    if len(line) > _LONGEST_LINE:
        reason = f"it has {len(line):,} characters: that is not a line of a crontab"
        raise UntranslatableError(reason)
    match = _LINE.fullmatch(line)
    if match is None:
        raise UntranslatableError(f"`{line.strip()}` is not a line of a crontab")
    when, command = match.groups()
    if with_users:
        user, *rest = command.split(maxsplit=1)
        command = "".join(rest)
        task.differ("environment", f"ran as {user}")
    if flaw := _flaw_of_command(command, with_users):
        raise UntranslatableError(f"`{line.strip()}` {flaw}")
    add_command(task, _percent(command.strip()), shell)
    place, task.was = task.was, _name_of(task, command)
    try:
        task.entry = {"cron": _cron(task, when), "timezone": _zone(zone), **task.entry}
    except UntranslatableError as error:
        raise UntranslatableError(f"{error} ({place})") from None
    options = task.entry.pop("options", {})
    task.entry.setdefault("overlap_policy", "allow")
    task.entry |= {"catch_up_window": 0, "options": {**options, **NO_RETRY}}


def _flaw_of_command(command: str, with_users: bool) -> str:
    """Return why the text after the times is hardly a command, empty if it may be one."""
    first, *rest = command.split(maxsplit=1)[:2] or [""]
    if not first:
        return "has no command"
    if _FIELD.fullmatch(first):
        return f"has more than five fields of times, or `{first}` is not a command: cron has five"
    if not with_users and rest and first in _USERS:
        return f"has `{first}` before the command, as lines of a system crontab have: add --system"
    return ""


def _cron(task: ImportedTask, text: str) -> str:
    if text.lower() == "@reboot":
        reason = "it ran at the start of the machine; call it in the start of the project instead"
        raise UntranslatableError(reason)
    if text.startswith("@") and text.lower() not in MACROS:
        raise UntranslatableError(f"`{text}` is not a supported time")
    return either_day(task, text, star_is_and=True)


def _zone(name: str) -> str:
    try:
        return validate_zone(name).key
    except UnknownZoneError:
        raise UntranslatableError(f"CRON_TZ={name} is not an IANA time zone") from None


def _percent(command: str) -> str:
    """Replace per cent signs: the first ends the command, the others end lines of its input."""
    pieces = re.split(r"(?<!\\)%", command)
    return "\n".join(piece.replace("\\%", "%") for piece in pieces)


def _name_of(task: ImportedTask, command: str) -> str:
    if "command" in task.entry:
        return str(task.entry["command"][0])
    words = [word for word in re.split(r"[\s;&|]+", command) if word and "=" not in word]
    heads = [word for word in words if word not in ("cd", "sudo", "bash", "sh", "test", "[", "-x")]
    return (heads[0] if heads else command).rstrip("/").rpartition("/")[2].partition(".")[0]
