"""Check in with external monitors at the start and the end of each monitored run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID, uuid5

from .. import conf
from ..core import events
from ..core.declarations.declaration import Declaration
from ..core.monitor import Definition, Monitoring, define
from ..runtime.clock import Clock, system_clock
from ..runtime.watchers import Whose
from ..signals import signal_of
from .checkins import CheckIn, State, define_check, ping, to_sentry
from .delivery import Delivery

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
    """Send check-ins for the runs of this process."""

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
