"""As much of the rivals as their schedules need, so that none of them has to be installed.

Each keeps what the real one keeps under the same names: Celery 5.7, django-cron 0.6,
APScheduler 3.11.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import ModuleType, SimpleNamespace
from typing import Any

_FIELDS = ("year", "month", "day", "week", "day_of_week", "hour", "minute", "second")
_LEAST = {"month": "1", "day": "1", "hour": "0", "minute": "0", "second": "0"}


class crontab:
    """The fields are kept as they were written."""

    def __init__(self, *texts: Any, **named: Any) -> None:
        order = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
        given = {**dict(zip(order, texts, strict=False)), **named}
        for name in order:
            setattr(self, f"_orig_{name}", given.get(name, "*"))


class solar:
    """An event of the sun at a place."""

    def __init__(self, event: str, lat: float, lon: float) -> None:
        self.event, self.lat, self.lon = event, lat, lon


class Schedule:
    """Of django-cron."""

    def __init__(self, **given: Any) -> None:
        self.run_every_mins = given.get("run_every_mins")
        self.run_at_times = given.get("run_at_times", [])
        self.retry_after_failure_mins = given.get("retry_after_failure_mins")
        self.run_on_days = given.get("run_on_days")
        self.run_monthly_on_days = given.get("run_monthly_on_days")


class CronJobBase:
    """Of django-cron."""


class _Field:
    def __init__(self, name: str, text: str) -> None:
        self.name, self._text = name, text

    def __str__(self) -> str:
        return self._text


class CronTrigger:
    """Fields before the first one that was given are any, those behind the last one least."""

    def __init__(self, *, timezone: str = "UTC", **given: Any) -> None:
        last = max(map(_FIELDS.index, given))
        self.fields = [
            _Field(name, str(given.get(name, _LEAST.get(name, "*") if number > last else "*")))
            for number, name in enumerate(_FIELDS)
        ]
        self.timezone = timezone
        self.start_date = self.end_date = self.jitter = None

    @classmethod
    def from_crontab(cls, text: str, timezone: str = "UTC") -> CronTrigger:
        names = ("minute", "hour", "day", "month", "day_of_week")
        return cls(timezone=timezone, **dict(zip(names, text.split(), strict=True)))


class IntervalTrigger:
    """A length of time."""

    def __init__(self, **length: float) -> None:
        self.interval, self.timezone = timedelta(**length), "UTC"
        self.start_date: Any = None
        self.end_date: Any = None
        self.jitter: float | None = None


class DateTrigger:
    """One instant."""

    def __init__(self, run_date: Any) -> None:
        self.run_date = run_date


class BackgroundScheduler:
    """One that was not started: its jobs have what was given, and no more."""

    def __init__(self, timezone: str = "UTC", job_defaults: dict[str, Any] | None = None) -> None:
        self._timezone, self._job_defaults = timezone, job_defaults or {}
        self._jobs: list[Any] = []

    def add_job(self, func: Callable[..., Any], trigger: Any = None, **given: Any) -> None:
        if trigger == "interval":
            length = {name: given.pop(name) for name in ("hours", "minutes") if name in given}
            trigger = IntervalTrigger(**length)
        module, name = func.__module__, func.__qualname__
        ref = None if "<lambda>" in name else f"{module}:{name}"
        own = {"args": (), "kwargs": {}, **given}
        self._jobs.append(SimpleNamespace(trigger=trigger, func_ref=ref, **own))

    def get_jobs(self) -> list[Any]:
        return self._jobs


def beat_row(**given: Any) -> SimpleNamespace:
    """A row as django-celery-beat 2.9 has it."""
    nothing = ("interval", "crontab", "solar", "clocked", "queue", "exchange", "routing_key")
    keys: dict[str, Any] = dict.fromkeys(nothing)
    keys |= dict.fromkeys(("priority", "expires", "expire_seconds", "start_time"))
    keys |= {
        "name": "a",
        "task": "tests.management.callbacks.nothing",
        "args": "[]",
        "kwargs": "{}",
    }
    keys |= {"one_off": False, "enabled": True, "description": ""}
    return SimpleNamespace(**{**keys, **given})


def crontab_row(**given: str) -> SimpleNamespace:
    names = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
    return SimpleNamespace(**{**dict.fromkeys(names, "*"), "timezone": "UTC", **given})


def modules() -> dict[str, ModuleType]:
    """Give them by the names that settings import."""
    contents: dict[str, dict[str, Any]] = {
        "celery": {},
        "celery.schedules": {"crontab": crontab, "solar": solar},
        "django_cron": {"Schedule": Schedule, "CronJobBase": CronJobBase},
        "apscheduler": {},
        "apscheduler.schedulers": {},
        "apscheduler.schedulers.background": {"BackgroundScheduler": BackgroundScheduler},
        "apscheduler.triggers": {},
        "apscheduler.triggers.cron": {"CronTrigger": CronTrigger},
    }
    made = {name: ModuleType(name) for name in contents}
    for name, names in contents.items():
        vars(made[name]).update(names)
    return made
