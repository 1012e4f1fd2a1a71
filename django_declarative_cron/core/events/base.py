"""What every event is: a level, an instant, for some a task."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened at an instant."""

    level: ClassVar[Level] = "DEBUG"
    at: datetime

    def __init_subclass__(cls, level: Level | None = None) -> None:
        # ``slots`` makes each class a second time, without the keyword.
        if level is not None:
            cls.level = level


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent(Event):
    """Something that happened to one task."""

    task_name: str
