"""A check-in: what a monitor is told of one run, by Sentry's SDK or by asking for an address."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

from ..core.monitor import Definition, Monitoring
from .delivery import DeliveryError
from .http_client import ask

State = Literal["in_progress", "ok", "error"]

_MINUTE = timedelta(minutes=1)
_PATHS: dict[State, str] = {"in_progress": "/start", "ok": "", "error": "/fail"}
_LONGEST_BODY = 10_000
_UNITS = (("day", 1440), ("hour", 60), ("minute", 1))


@dataclass(frozen=True, slots=True)
class CheckIn:
    """What a monitor is told of one run.

    Args:
        definition: of the monitor.
        state: of the run.
        run: the same at its start and its end, in every process.
        duration: in seconds, where it has ended.
        words: why it failed.
    """

    definition: Definition
    state: State
    run: UUID
    duration: float | None = None
    words: str = ""


def to_sentry(checkin: CheckIn) -> None:
    """Hand a check-in to the project's Sentry SDK, which sends it in a thread of its own.

    The definition goes with it, so that the monitor is made, and kept as it is declared.

    Raises:
        DeliveryError: the SDK is not installed, or not set up.
    """
    try:
        import sentry_sdk
        from sentry_sdk import crons
    except ImportError:
        words = 'sentry_sdk is not installed: install "sentry-sdk"'
        raise DeliveryError(words, is_final=True) from None
    if not sentry_sdk.get_client().is_active():
        raise DeliveryError("sentry_sdk.init was not called in this process", is_final=True)
    crons.capture_checkin(
        monitor_slug=checkin.definition.slug,
        check_in_id=checkin.run.hex,
        status=checkin.state,
        duration=checkin.duration,
        monitor_config=sentry_config(checkin.definition),  # type: ignore[arg-type]
    )


def sentry_config(definition: Definition) -> dict[str, Any]:
    """Return the definition as Sentry's SDK takes it."""
    schedule: dict[str, Any] = {"type": "crontab", "value": definition.cron}
    if definition.is_heartbeat:
        minutes = definition.every // _MINUTE
        unit, size = next(each for each in _UNITS if minutes % each[1] == 0)
        schedule = {"type": "interval", "value": minutes // size, "unit": unit}
    found = {
        "schedule": schedule,
        "timezone": definition.timezone,
        "checkin_margin": _minutes(definition.margin),
        "max_runtime": _minutes(definition.max_runtime),
        "failure_issue_threshold": definition.failures,
        "recovery_threshold": definition.recoveries,
    }
    return {key: value for key, value in found.items() if value is not None}


def ping(checkin: CheckIn, timeout: timedelta) -> None:
    """Ask for the address of a check, as Healthchecks has it: ``/start``, nothing, ``/fail``.

    Raises:
        DeliveryError: it was not taken.
    """
    parts = urlsplit(checkin.definition.ping)
    path = parts.path.rstrip("/") + _PATHS[checkin.state]
    query = "&".join(filter(None, [parts.query, f"rid={checkin.run}"]))
    url = urlunsplit(parts._replace(path=path, query=query))
    ask(url, timeout, body=checkin.words.encode()[:_LONGEST_BODY])


def define_check(definition: Definition, option: Monitoring) -> None:
    """Make a check, or bring it in step, by the management API of Healthchecks (v3).

    Raises:
        DeliveryError: it was not taken.
    """
    body: dict[str, Any] = {
        "name": definition.slug,
        "slug": definition.slug,
        "grace": round((definition.margin + definition.max_runtime).total_seconds()),
        "unique": ["slug"],
    }
    if definition.is_heartbeat:
        body["timeout"] = max(round(definition.every.total_seconds()), 60)
    else:
        body |= {"schedule": definition.cron, "tz": definition.timezone}
    url = f"{option.api.rstrip('/')}/checks/"
    headers = {"content-type": "application/json", "x-api-key": option.api_key}
    ask(url, option.timeout, body=json.dumps(body).encode(), headers=headers)


def is_of_api(definition: Definition, option: Monitoring) -> bool:
    """Return whether a check has the common address, and so a definition that we keep."""
    return bool(option.api) and definition.ping == option.ping.replace("{slug}", definition.slug)


def _minutes(length: timedelta) -> int:
    return max(-(-length // _MINUTE), 1)
