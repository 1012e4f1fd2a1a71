"""django-crontab: the list ``CRONJOBS``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .. import conf
from .calls import PRINTED, add_call
from .cron_fields import either_day
from .result import (
    AS_CRON_DOES,
    NO_RETRY,
    Difference,
    ImportedTask,
    ImportResult,
    UntranslatableError,
)
from .sources import Request

GENERAL: Final = (
    Difference("zone", "the crontab was read by the clock of the machine; `timezone` says which"),
    *AS_CRON_DOES,
)

CALL_COMMAND: Final = (
    "django.core.management.call_command",
    "django.core.management.__init__.call_command",
)


def read(request: Request) -> ImportResult:
    locked = bool(conf.foreign("CRONTAB_LOCK_JOBS", False))
    general = [*GENERAL]
    for name in ("CRONTAB_COMMAND_PREFIX", "CRONTAB_COMMAND_SUFFIX"):
        if conf.foreign(name):
            text = f"{name} ({conf.foreign(name)}) was part of every command"
            general.append(Difference("environment", text))
    items = conf.foreign("CRONJOBS", ())
    tasks = [convert(each, request.zone, locked=locked) for each in items]
    return ImportResult("django-crontab", "CRONJOBS of the settings", tasks, general)


def convert(item: Any, zone: str, *, locked: bool = False) -> ImportedTask:
    """Convert an item of the list, which has two to five parts."""
    task = ImportedTask(repr(item))
    with task.refusing():
        if not isinstance(item, list | tuple) or len(item) < 2:
            raise UntranslatableError("it is not an item of CRONJOBS")
        cron, func, *rest = item
        # The last text is shell text behind the command.
        suffix = rest.pop().strip() if rest and isinstance(rest[-1], str) else ""
        args, kwargs = [*rest, [], {}][:2] if len(rest) != 1 else (rest[0], {})
        is_command = func in CALL_COMMAND and bool(args)
        task.was = str(args[0]) if is_command else str(func).rpartition(".")[2]
        task.entry["cron"] = either_day(task, str(cron), star_is_and=True)
        task.entry["timezone"] = zone
        if is_command:
            _add_command(task, args, kwargs or {})
        else:
            add_call(task, str(func), args or [], kwargs or {})
        if not locked:
            task.entry["overlap_policy"] = "allow"
        task.entry |= {"catch_up_window": 0, "options": NO_RETRY}
        if suffix:
            task.differ("output", f"its command ended in `{suffix}`; {PRINTED}")
    return task


def _add_command(task: ImportedTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    words = [str(word) for word in args]
    for name, value in kwargs.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value is not False and value is not None:
            words.append(f"{option}={value}")
    task.entry["command"] = words
    if kwargs:
        task.differ("arguments", "its options are words of the command now")
