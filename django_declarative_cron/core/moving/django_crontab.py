"""From django-crontab: the list ``CRONJOBS``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .called import PRINTED, Binder, called, unbound
from .moved import NO_RETRY, Difference, Moved, UntranslatableError, named
from .unix import AS_CRON_DOES, either_day

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
    """One item of the list.

    Args:
        cron: five fields.
        func: dotted path.
        zone: IANA name of the zone of the machine.
        args: positional arguments.
        kwargs: arguments by name.
        suffix: shell text behind the command, such as a redirection.
        locked: runs may not overlap.
    """

    cron: str
    func: str
    zone: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    suffix: str = ""
    locked: bool = False


def job_of(item: Sequence[Any], zone: str, *, locked: bool = False) -> Job:
    """Understand an item of the list, which has two to five parts."""
    parts = list(item)
    suffix = parts.pop() if len(parts) > 2 and isinstance(parts[-1], str) else ""
    cron, func, *rest = parts
    args, kwargs = ([*rest, [], {}])[:2] if len(rest) != 1 else (rest[0], {})
    return Job(str(cron), str(func), zone, args or [], kwargs or {}, suffix, locked)


def moved(jobs: Iterable[Job], bind: Binder = unbound) -> tuple[Moved, ...]:
    """Return entries for items."""
    return named(_moved(job, bind) for job in jobs)


def _moved(job: Job, bind: Binder) -> Moved:
    is_command = job.func in CALL_COMMAND and bool(job.args)
    was = str(job.args[0]) if is_command else job.func.rpartition(".")[2]
    try:
        cron, told = either_day(job.cron, star_is_and=True)
        keys, also = _command(job) if is_command else called(job.func, job.args, job.kwargs, bind)
    except UntranslatableError as error:
        return Moved(was, None).refused(str(error))
    entry: dict[str, Any] = {"cron": cron, "timezone": job.zone, **keys}
    if not job.locked:
        entry["overlap_policy"] = "allow"
    entry["catch_up_window"] = 0
    entry["options"] = {"retry": dict(NO_RETRY)}
    if job.suffix.strip():
        text = f"its command ended in `{job.suffix.strip()}`; {PRINTED}"
        also.append(Difference("output", text))
    return Moved(was, entry, (*told, *also))


def _command(job: Job) -> tuple[dict[str, Any], list[Difference]]:
    words = [str(word) for word in job.args]
    for name, value in job.kwargs.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value is not False and value is not None:
            words.append(f"{option}={value}")
    told = [Difference("arguments", "its options are words of the command now")]
    return {"command": words}, told if job.kwargs else []
