"""A short notation for traces, as the theory's examples are written.

``"10 IS[a] · 11 IEs[a] · 60 Due a · 61 RS a"``: seconds and an event, ``·`` between positions,
``+`` between events of one position. ``init 10 [a]`` is an IS and, a second later, an IEs;
``stop 65`` an SS and an SE; ``60 Freeze to 600`` ends before 600. Tasks are a (retry delay 300 s),
b (120 s), z (0 s); a' is a with another schedule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

Record = dict[str, Any]

START = datetime(2024, 1, 1, tzinfo=UTC)
DELAYS = {"a": 300, "b": 120, "z": 0}
CRONS = {"a": "2 * * * *", "a'": "1 * * * *", "b": "7 * * * *", "z": "1 * * * *"}

_EVENT = re.compile(
    r"(?P<kind>[A-Za-z]+)(?:\[(?P<names>[^]]*)\])?(?: (?P<task>[a-z]'?))?(?: to (?P<until>\d+))?"
)
_SHORT = (
    (re.compile(r"init (\d+) (\[[^]]*\])"), r"\1 IS\2 · {} IEs\2"),
    (re.compile(r"stop (\d+)"), r"\1 SS · {} SE"),
)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def trace(text: str, crons: Mapping[str, str] | None = None) -> list[Record]:
    """Read the notation.

    Args:
        text: in it.
        crons: cron expressions by task, for registrations that carry one.
    """
    for short, long in _SHORT:
        text = short.sub(partial(_expanded, long), text)
    return [
        _record(part.partition(" "), event, position, crons or {})
        for position, part in enumerate(each.strip() for each in text.split("·"))
        for event in part.partition(" ")[2].split("+")
    ]


def _expanded(long: str, short: re.Match[str]) -> str:
    return short.expand(long).format(int(short[1]) + 1)


def _record(
    part: tuple[str, str, str], text: str, position: int, crons: Mapping[str, str]
) -> Record:
    found = _EVENT.fullmatch(text.strip())
    assert found, text
    kind, names, task = found["kind"], found["names"], found["task"]
    record: Record = {"at": at(float(part[0])), "event": kind, "position": position}
    if names is not None:
        record["registrations"] = [registration(name, crons) for name in names.split(",") if name]
    if found["until"]:
        record["until"] = at(float(found["until"]))
    if task is not None:
        record["task"] = task[0]
        if kind == "Due" and task in crons:
            record["cron"] = crons[task]
    return record


def registration(name: str, crons: Mapping[str, str]) -> Record:
    entry: Record = {"name": name[0], "retry_delay": timedelta(seconds=DELAYS[name[0]])}
    return entry | ({"cron": crons[name], "timezone": "UTC"} if name in crons else {})
