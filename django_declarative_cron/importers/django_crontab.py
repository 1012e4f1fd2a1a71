"""django-crontab: the list ``CRONJOBS``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .. import conf
from .calls import PRINTED, Keys, call_keys
from .cron_fields import AS_CRON_DOES, either_day
from .result import (
    NO_RETRY,
    Difference,
    ImportedTask,
    ImportResult,
    UntranslatableError,
    named,
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


@dataclass(frozen=True, slots=True)
class Job:
    """One item of the list; the suffix is shell text behind the command."""

    cron: str
    func: str
    zone: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    suffix: str = ""
    locked: bool = False


def read(request: Request) -> ImportResult:
    """Read the list ``CRONJOBS``."""
    locked = bool(conf.foreign("CRONTAB_LOCK_JOBS", False))
    items = conf.foreign("CRONJOBS", ())
    whole = [each for each in items if isinstance(each, list | tuple) and len(each) > 1]
    strange = [each for each in items if each not in whole]
    general = [*GENERAL]
    for name in ("CRONTAB_COMMAND_PREFIX", "CRONTAB_COMMAND_SUFFIX"):
        if conf.foreign(name):
            text = f"{name} ({conf.foreign(name)}) was part of every command"
            general.append(Difference("environment", text))
    tasks = (
        *named(convert(job_of(each, request.zone, locked=locked)) for each in whole),
        *(ImportedTask(repr(each), None).refused("it is no item of CRONJOBS") for each in strange),
    )
    return ImportResult("django-crontab", "CRONJOBS of the settings", tasks, tuple(general))


def job_of(item: Sequence[Any], zone: str, *, locked: bool = False) -> Job:
    """Return an item of the list, which has two to five parts."""
    parts = list(item)
    suffix = parts.pop() if len(parts) > 2 and isinstance(parts[-1], str) else ""
    cron, func, *rest = parts
    args, kwargs = ([*rest, [], {}])[:2] if len(rest) != 1 else (rest[0], {})
    return Job(str(cron), str(func), zone, args or [], kwargs or {}, suffix, locked)


def convert(job: Job) -> ImportedTask:
    is_command = job.func in CALL_COMMAND and bool(job.args)
    was = str(job.args[0]) if is_command else job.func.rpartition(".")[2]
    try:
        cron, days = either_day(job.cron, star_is_and=True)
        keys, calls = _command(job) if is_command else call_keys(job.func, job.args, job.kwargs)
    except UntranslatableError as error:
        return ImportedTask(was, None).refused(str(error))
    entry: dict[str, Any] = {"cron": cron, "timezone": job.zone, **keys}
    if not job.locked:
        entry["overlap_policy"] = "allow"
    entry["catch_up_window"] = 0
    entry["options"] = {"retry": dict(NO_RETRY)}
    if job.suffix.strip():
        text = f"its command ended in `{job.suffix.strip()}`; {PRINTED}"
        calls.append(Difference("output", text))
    return ImportedTask(was, entry, (*days, *calls))


def _command(job: Job) -> Keys:
    words = [str(word) for word in job.args]
    for name, value in job.kwargs.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value is not False and value is not None:
            words.append(f"{option}={value}")
    differences = [Difference("arguments", "its options are words of the command now")]
    return {"command": words}, differences if job.kwargs else []
