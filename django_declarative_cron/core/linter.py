"""What is allowed, works, and is seldom meant: crowds in one minute, steps that do not fit."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from .declaration import Declaration
from .problem import Check, Problem
from .reading import Declared

CROWD: Final = 25
"""From how many tasks on one minute is worth a word."""

_SHOWN: Final = 3
_STEP: Final = re.compile(r"(?:\*|0-59|0-23)/([0-9]{1,2})")
_FIELDS: Final = (("second", 60), ("minute", 60), ("hour", 24))


def crowds(declared: Iterable[Declared], now: datetime) -> Iterator[Problem]:
    """Yield a warning for each minute that very many tasks begin in next.

    Tasks that run in every hour are left out: they share minutes by their nature.

    Args:
        declared: what was read.
        now: aware; the next occurrence of each task after it is looked at.
    """
    minutes: dict[datetime, list[str]] = defaultdict(list)
    for each in declared:
        declaration = each.declaration
        if not declaration.enabled or not declaration.schedule.expression.hour_restricted:
            continue
        upcoming = declaration.schedule.anchored(now).next_after(now)
        if upcoming is not None:
            minutes[upcoming.replace(second=0, microsecond=0)].append(declaration.name)
    for minute, names in sorted(minutes.items()):
        if len(names) >= CROWD:
            shown = ", ".join(map(repr, names[:_SHOWN]))
            yield Problem(
                check=Check.CROWD,
                place="SCHEDULED_TASKS",
                message=f"{len(names)} tasks begin in the minute {minute:%Y-%m-%d %H:%M} UTC: "
                f"{shown} and {len(names) - _SHOWN} more",
                hint="Spread them over the minutes around it, or give WORKERS enough of them.",
            )


def uneven_steps(declaration: Declaration) -> Iterator[str]:
    """Yield a message for each step that does not go into its hour or day without a rest.

    Args:
        declaration: of the task.
    """
    fields = declaration.cron.split()
    if len(fields) not in (5, 6):
        return
    names = _FIELDS if len(fields) == 6 else _FIELDS[1:]
    for (name, size), text in zip(names, fields, strict=False):
        step = _STEP.fullmatch(text)
        number = int(step[1]) if step else 0
        if 1 < number < size and size % number:
            yield (
                f"`{declaration.cron}`: `{text}` does not go into {size} {name}s, "
                f"so the last interval is {size % number} {name}s long"
            )
