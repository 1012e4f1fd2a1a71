"""Send one check-in to a monitor: by the Sentry SDK, or by a ping."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

from ..core.monitor import Definition, Monitoring
from .delivery import DeliveryError
from .http_client import post

State = Literal["in_progress", "ok", "error"]

_MINUTE = timedelta(minutes=1)
_PATHS: dict[State, str] = {"in_progress": "/start", "ok": "", "error": "/fail"}
_MAX_BODY = 10_000
_UNITS = (("day", 1440), ("hour", 60), ("minute", 1))


@dataclass(frozen=True, slots=True)
class CheckIn:
    """The state of one run, for a monitor.

    Args:
        definition: of the monitor.
        state: of the run.
        run: the same id at start and end, in each process.
        duration: in seconds, if the run has ended.
        error: the reason of a failure.
    """

    definition: Definition
    state: State
    run: UUID
    duration: float | None = None
    error: str = ""


def to_sentry(checkin: CheckIn) -> None:
    """Hand a check-in to the Sentry SDK of the project, which sends it in its own thread.

    The check-in contains the definition, so that Sentry creates and updates the monitor.

    Raises:
        DeliveryError: the SDK is not installed or not initialised.
    """
    try:
        import sentry_sdk
        from sentry_sdk import crons
    except ImportError:
        raise DeliveryError('sentry_sdk is not installed: install "sentry-sdk"') from None
    if not sentry_sdk.get_client().is_active():
        raise DeliveryError("sentry_sdk.init was not called in this process")
    crons.capture_checkin(
        monitor_slug=checkin.definition.slug,
        check_in_id=checkin.run.hex,
        status=checkin.state,
        duration=checkin.duration,
        monitor_config=_sentry_config(checkin.definition),  # type: ignore[arg-type]
    )


def _sentry_config(definition: Definition) -> dict[str, Any]:
    schedule: dict[str, Any] = {"type": "crontab", "value": definition.cron}
    if definition.is_heartbeat:
        minutes = definition.every // _MINUTE
        unit, size = next(each for each in _UNITS if minutes % each[1] == 0)
        schedule = {"type": "interval", "value": minutes // size, "unit": unit}
    config = {
        "schedule": schedule,
        "timezone": definition.timezone,
        "checkin_margin": _minutes(definition.margin),
        "max_runtime": _minutes(definition.max_runtime),
        "failure_issue_threshold": definition.failures,
        "recovery_threshold": definition.recoveries,
    }
    return {key: value for key, value in config.items() if value is not None}


def ping(checkin: CheckIn, timeout: timedelta) -> None:
    """Request the URL of a check as Healthchecks defines it: ``/start``, no suffix, ``/fail``.

    Raises:
        DeliveryError: the monitor did not accept it.
    """
    parts = urlsplit(checkin.definition.ping)
    path = parts.path.rstrip("/") + _PATHS[checkin.state]
    query = "&".join(filter(None, [parts.query, f"rid={checkin.run}"]))
    url = urlunsplit(parts._replace(path=path, query=query))
    post(url, timeout, body=checkin.error.encode()[:_MAX_BODY])


def define_check(definition: Definition, option: Monitoring) -> None:
    """Create or update a check by the management API of Healthchecks (v3).

    Raises:
        DeliveryError: the API did not accept it.
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
    headers = {"content-type": "application/json", "x-api-key": option.api_key}
    url = f"{option.api.rstrip('/')}/checks/"
    post(url, option.timeout, body=json.dumps(body).encode(), headers=headers)


def _minutes(length: timedelta) -> int:
    return max(-(-length // _MINUTE), 1)
