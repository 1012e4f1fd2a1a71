"""Check in with external monitors at the start and the end of each monitored run.

A check-in is handed to the Sentry SDK, or is a ping.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID, uuid5

from .. import conf
from ..core import events
from ..core.declarations.declaration import Declaration
from ..core.monitor import Definition, Monitoring, define
from ..runtime.clock import Clock, system_clock
from ..runtime.watchers import Whose
from ..signals import signal_of
from .delivery import Delivery, DeliveryError
from .http_client import post

State = Literal["in_progress", "ok", "error"]

_MINUTE = timedelta(minutes=1)
_PATHS: dict[State, str] = {"in_progress": "/start", "ok": "", "error": "/fail"}
_MAX_BODY = 10_000
_UNITS = (("day", 1440), ("hour", 60), ("minute", 1))
_STATES: Mapping[type[events.Event], State] = {
    events.TaskRunStarted: "in_progress",
    events.TaskRunFetched: "in_progress",
    events.TaskRunCompleted: "ok",
    events.TaskRunFailed: "error",
    events.TaskRunCancelled: "error",
    events.TaskRunInterrupted: "error",
}
_ERRORS: Mapping[type[events.Event], str] = {
    events.TaskRunCancelled: "cancelled",
    events.TaskRunInterrupted: "its process died",
}


class Monitors:
    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._deliveries = {
            kind: Delivery(f"declarative-cron-{kind}", partial(self._failed, kind))
            for kind in ("sentry", "ping", "api")
        }
        self._definitions: Mapping[str, Definition] = {}
        self._option = Monitoring()
        self._defined: dict[str, Definition] = {}

    def begin(self, declarations: Sequence[Declaration] | None, whose: Whose) -> None:
        """Listen for the events of runs if any task is monitored."""
        option = conf.options().MONITOR
        if declarations is None:
            declarations = _declared(option)
        elif option is None and not any(each.monitor is not None for each in declarations):
            declarations = []
        now = self._clock.now()
        found = ((each.name, define(each, option, now)) for each in declarations)
        self._definitions = {name: each for name, each in found if each is not None}
        self._option = option or Monitoring()
        for kind in _STATES:
            change = signal_of(kind).connect if self._definitions else signal_of(kind).disconnect
            change(self._receive)
        if whose() is not None:
            self._define_checks()

    def end(self, seconds: float) -> None:
        """Stop listening, and wait for the messages that are still queued."""
        for kind in _STATES:
            signal_of(kind).disconnect(self._receive)
        until = self._clock.monotonic() + seconds
        for delivery in self._deliveries.values():
            delivery.finish(max(until - self._clock.monotonic(), 0.0))

    def _receive(self, event: Any, **_: object) -> None:
        definition = self._definitions.get(event.task_name)
        if definition is None or event.run is None:
            return
        checkin = CheckIn(
            definition,
            _STATES[type(event)],
            _run_id(event),
            getattr(event, "duration", None),
            getattr(event, "error", "") or _ERRORS.get(type(event), ""),
        )
        if definition.sentry:
            self._send("sentry", definition, partial(to_sentry, checkin))
        if definition.ping:
            self._send("ping", definition, partial(ping, checkin, self._option.timeout))

    def _define_checks(self) -> None:
        """Create or update the checks with the common URL that changed in this process."""
        option = self._option
        for definition in self._definitions.values():
            is_common = definition.ping == option.ping.replace("{slug}", definition.slug)
            if option.api and is_common and self._defined.get(definition.slug) != definition:
                self._defined[definition.slug] = definition
                self._send("api", definition, partial(define_check, definition, option))

    def _send(self, kind: str, definition: Definition, attempt: Callable[[], None]) -> None:
        self._deliveries[kind].send(attempt, definition.slug)

    def _failed(self, kind: str, error: str, failures: int) -> events.Event:
        at = self._clock.now()
        return events.CheckInFailed(at=at, monitor=kind, error=error, failures=failures)


def _declared(option: Monitoring | None) -> Sequence[Declaration]:
    """Return the declarations of the settings if any of them is monitored."""
    given: Any = conf.registrations()
    own = (isinstance(each, dict) and "monitor" in each for each in given)
    return conf.declarations(given) if option is not None or any(own) else []


def _run_id(event: Any) -> UUID:
    """Return the same id for a run in each process."""
    deployment = UUID(int=0) if event.facts is None else event.facts.deployment
    return uuid5(deployment, str(event.run))


# --- one check-in ---


@dataclass(frozen=True, slots=True)
class CheckIn:
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
