"""From a crontab: of a user, or of the system with a user in each line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any, Final

from ...cron.zones import UnknownZoneError, validate_zone
from ...exceptions import class_of, words_of
from .called import SHELL
from .command import command_of
from .moved import NO_RETRY, Difference, Moved, UntranslatableError, named
from .unix import AS_CRON_DOES, MACROS, either_day

GENERAL: Final = (
    *AS_CRON_DOES,
    Difference(
        "environment", "runs have the environment and the user of runscheduler, not those of cron"
    ),
)

_LONGEST_LINE: Final = 10_000
"""Ten times what cron itself takes; beyond it there is no crontab, and reading takes for ever."""

_SH: Final = "/bin/sh"
_FIELD: Final = re.compile(r"[0-9*?,/LW#-]+")
_USERS: Final = frozenset(
    ("root", "www-data", "nobody", "daemon", "postgres", "mysql", "nginx", "apache", "ubuntu")
)
_SETTING: Final = re.compile(r"\s*[\"']?([A-Za-z_][A-Za-z0-9_]*)[\"']?\s*=\s*(.*?)\s*")
_LINE: Final = re.compile(r"\s*(@\w+|(?:\S+\s+){4}\S+)\s+(.*?)\s*")


def moved(
    text: str, zone: str, *, with_users: bool = False
) -> tuple[tuple[Moved, ...], tuple[Difference, ...]]:
    """Return entries for the lines of a crontab.

    Returns:
        the tasks, and what its settings said for all below them.
    """
    said: list[Difference] = []
    return named(_lines(text, zone, with_users, said)), tuple(said)


def _lines(text: str, zone: str, with_users: bool, said: list[Difference]) -> Iterator[Moved]:
    shell = _SH
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if len(line) > _LONGEST_LINE:
            told = f"it has {len(line):,} characters: that is no line of a crontab"
            yield Moved(f"line {number}", None).refused(told)
            continue
        setting = _SETTING.fullmatch(line)
        if setting is None or line.lstrip().startswith(("*", "@")):
            yield _guarded(line, number, zone, with_users, shell)
        elif setting[1] == "SHELL":
            shell = setting[2].strip("\"'")
        elif setting[1] == "CRON_TZ":
            zone = setting[2].strip("\"'")
        else:
            said.append(_said(setting[1], line.strip()))


def _said(name: str, line: str) -> Difference:
    if name == "MAILTO":
        return Difference("output", f"`{line}`: nothing is mailed; what a run prints is kept")
    return Difference("environment", f"`{line}`: set it for runscheduler, or in the command")


def _guarded(line: str, number: int, zone: str, with_users: bool, shell: str) -> Moved:
    """Read a line; one that no reader stands is listed, and the others are read."""
    try:
        return _line(line, number, zone, with_users, shell)
    except (Exception, RecursionError, MemoryError) as error:
        told = f"it cannot be read: {class_of(error)}: {words_of(error)}"
        return Moved(f"line {number}", None).refused(told)


def _line(line: str, number: int, zone: str, with_users: bool, shell: str) -> Moved:
    match = _LINE.fullmatch(line)
    if match is None:
        return Moved(f"line {number}", None).refused(f"`{line.strip()}` is no line of a crontab")
    when, command, told = match[1], match[2], []
    if with_users:
        user, *rest = command.split(maxsplit=1)
        command = rest[0] if rest else ""
        told.append(Difference("environment", f"ran as {user}"))
    flaw = _flaw_of_command(command, with_users)
    if flaw:
        return Moved(f"line {number}", None).refused(f"`{line.strip()}` {flaw}")
    keys, also = command_of(_percent(command.strip()))
    if keys.get("callback") == SHELL and shell != _SH:
        keys["args"][0] = f"{shell} -c {shlex.quote(keys['args'][0])}"
        also.append(Difference("callback", f"`{shell}` runs it, because SHELL named it"))
    was = _name_of(keys, command)
    try:
        cron, days = _when(when)
        keys_of_zone = _zone(zone)
    except UntranslatableError as error:
        return Moved(was, None).refused(f"{error} (line {number})")
    options = {**keys.pop("options", {}), "retry": dict(NO_RETRY)}
    overlap = keys.pop("overlap_policy", "allow")
    entry = {"cron": cron, **keys_of_zone, **keys, "overlap_policy": overlap, "catch_up_window": 0}
    entry["options"] = options
    return Moved(was, entry, (*days, *told, *also))


def _flaw_of_command(command: str, with_users: bool) -> str:
    """Return why what follows the times is hardly the command, or give an empty text."""
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
        told = "it ran at the start of the machine; call it in the start of the project instead"
        raise UntranslatableError(told)
    if text.startswith("@") and text.lower() not in MACROS:
        raise UntranslatableError(f"`{text}` is no time that is known here")
    return either_day(text, star_is_and=True)


def _zone(name: str) -> dict[str, Any]:
    try:
        return {"timezone": validate_zone(name).key}
    except UnknownZoneError:
        raise UntranslatableError(f"CRON_TZ={name} is no IANA time zone") from None


def _percent(command: str) -> str:
    """Read per cent signs: the first ends the command, the others end lines of its input."""
    pieces = re.split(r"(?<!\\)%", command)
    return "\n".join(piece.replace("\\%", "%") for piece in pieces)


def _name_of(keys: dict[str, Any], command: str) -> str:
    words = keys.get("command")
    if words:
        return str(words[0])
    said = [word for word in re.split(r"[\s;&|]+", command) if word and "=" not in word]
    heads = [word for word in said if word not in ("cd", "sudo", "bash", "sh", "test", "[", "-x")]
    return (heads[0] if heads else command).rstrip("/").rpartition("/")[2].partition(".")[0]
