"""Whoever delivers is woken by everything that it has to deliver, and by nothing else."""

from __future__ import annotations

import types
import uuid
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from django_declarative_cron import conf
from django_declarative_cron.core import events
from django_declarative_cron.core.event_sink import SOURCES, envelopes
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.runtime.event_delivery import SinkThread
from django_declarative_cron.signals import signal_of

from ..receiver import Post

AT = datetime(2024, 1, 1, 10, tzinfo=UTC)
FACTS = events.Facts(
    deployment=uuid.UUID(int=1),
    source="urn:uuid:0",
    cron="0 * * * *",
    timezone="UTC",
    job_type="garden.water",
    job=uuid.UUID(int=2),
    run_count=1,
    attempt=1,
    scheduled_time=AT,
)
VALUES: dict[Any, Any] = {int: 1, str: "x", float: 1.0, datetime: AT, events.Facts: FACTS}


class Idle(SinkThread):
    """One that is told of news, and does nothing with them."""

    def _run(self) -> None:
        pass


def sample(hint: Any, *, flag: bool) -> Any:
    if hint is bool:
        return flag
    if get_origin(hint) in (Union, types.UnionType):
        return sample(get_args(hint)[0], flag=flag)
    return VALUES.get(hint)


def is_told(kind: type[events.Event]) -> bool:
    """Tell whether other programs hear of an event, with any flags."""
    hints = get_type_hints(kind)
    made = [
        kind(**{f.name: sample(hints[f.name], flag=flag) for f in fields(kind) if f.init})
        for flag in (True, False)
    ]
    return any(map(envelopes, made))


@pytest.fixture
def idle(post_to: Post) -> Iterator[Idle]:
    post_to("http://127.0.0.1:9/")
    made = Idle(system_clock, conf.options, lambda: None)
    made.start()
    yield made
    made.stop(None)


def woken_by(idle: Idle, kind: type[events.Event]) -> bool:
    idle._woken.clear()
    # Others may listen still, who miss the fields of the event.
    signal_of(kind).send_robust(sender=kind)
    return idle._woken.is_set()


def test_it_is_woken_by_every_event_that_is_told(idle: Idle) -> None:
    told = {kind for kind in events.ALL if is_told(kind)}
    assert {kind for kind in events.ALL if woken_by(idle, kind)} == told == set(SOURCES)
    assert {events.TaskRunFetched, events.TaskRunCancelRequested, events.TaskSkipped} <= told
    assert events.TaskPreserved not in told


def test_once_it_has_stopped_nothing_wakes_it(idle: Idle) -> None:
    idle.stop(None)
    assert not any(woken_by(idle, kind) for kind in events.ALL)
