"""Checking in with monitors at the start and the end of each run of a task that is watched."""

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
from .checkins import CheckIn, State, define_check, is_of_api, ping, to_sentry
from .delivery import Courier, Failure
from .lanes import Lanes

_STATES: Mapping[type[events.Event], State] = {
    events.TaskRunStarted: "in_progress",
    events.TaskRunFetched: "in_progress",
    events.TaskRunCompleted: "ok",
    events.TaskRunFailed: "error",
    events.TaskRunCancelled: "error",
    events.TaskRunInterrupted: "error",
}


class Monitors:
    """Hear of runs, and check in.

    Args:
        clock: dates what a heartbeat is made from.
    """

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._lanes: dict[str, Lanes] = {}
        self._definitions: Mapping[str, Definition] = {}
        self._option = Monitoring()
        self._sent: dict[str, Definition] = {}

    def begin(self, declarations: Sequence[Declaration] | None, whose: Whose) -> None:
        """Hear of runs from now on, where a task is watched."""
        option = conf.options().MONITOR
        if declarations is None:
            declarations = _declared(option)
        elif option is None and not _is_any_watched(declarations):
            declarations = []
        now = self._clock.now()
        found = ((each.name, define(each, option, now)) for each in declarations)
        self._definitions = {name: each for name, each in found if each is not None}
        self._option = option or Monitoring()
        for kind in _STATES:
            change = signal_of(kind).connect if self._definitions else signal_of(kind).disconnect
            change(self._hear)
        if whose() is not None:
            self._keep()

    def end(self, seconds: float) -> None:
        """Send what waits, and hear no more."""
        for kind in _STATES:
            signal_of(kind).disconnect(self._hear)
        until = self._clock.monotonic() + seconds
        for courier in [each for lanes in list(self._lanes.values()) for each in lanes.couriers]:
            courier.finish(until - self._clock.monotonic())

    def _hear(self, event: Any, **_: object) -> None:
        definition = self._definitions.get(event.task_name)
        if definition is None or event.run is None:
            return
        checkin = CheckIn(
            definition,
            _STATES[type(event)],
            _name_of(event),
            getattr(event, "duration", None),
            getattr(event, "error", "") or _WORDS.get(type(event), ""),
        )
        if definition.sentry:
            self._send("sentry", definition, partial(to_sentry, checkin))
        if definition.ping:
            self._send("ping", definition, partial(ping, checkin, self._option.timeout))

    def _keep(self) -> None:
        """Bring the definitions in step, those that this process has not sent before."""
        ours = [each for each in self._definitions.values() if is_of_api(each, self._option)]
        for definition in ours:
            if self._sent.get(definition.slug) != definition:
                self._sent[definition.slug] = definition
                self._send("api", definition, partial(define_check, definition, self._option))

    def _send(self, monitor: str, whose: Definition, attempt: Callable[[], None]) -> None:
        tell = partial(_failed, self._clock, monitor)
        made = Lanes(partial(Courier, f"declarative-cron-{monitor}", tell, self._clock))
        # Runs end in threads: of two that come first, one keeps what the other has made.
        self._lanes.setdefault(monitor, made).send(attempt, whose.slug)


def _is_any_watched(declarations: Sequence[Declaration]) -> bool:
    return any(each.monitor is not None for each in declarations)


def _declared(option: Monitoring | None) -> Sequence[Declaration]:
    """Read the settings, where anything is watched."""
    given: Any = conf.registrations()
    own = (isinstance(each, dict) and "monitor" in each for each in given)
    return conf.declarations(given) if option is not None or any(own) else []


_WORDS: Mapping[type[events.Event], str] = {
    events.TaskRunCancelled: "cancelled",
    events.TaskRunInterrupted: "its process died",
}


def _name_of(event: Any) -> UUID:
    """Name a run the same in each process."""
    facts = event.facts
    deployment = UUID(int=0) if facts is None else facts.deployment
    return uuid5(deployment, str(event.run))


def _failed(clock: Clock, monitor: str, failure: Failure) -> events.Event:
    return events.CheckInFailed(
        at=clock.now(), monitor=monitor, error=failure.error, failures=failure.failures
    )
