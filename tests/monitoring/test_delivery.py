"""Who sends in the background is held up by nobody for ever."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from django_declarative_cron.core.events import Event
from django_declarative_cron.monitoring import delivery, lanes, notifications
from django_declarative_cron.monitoring.delivery import Courier, Failure
from django_declarative_cron.runtime.clock import system_clock

from ..timeouts import TIMEOUT


class Held:
    """An attempt that does not end before it is let."""

    def __init__(self) -> None:
        self.began, self.may_end, self.ended = (threading.Event() for _ in range(3))

    def __call__(self) -> None:
        self.began.set()
        assert self.may_end.wait(TIMEOUT)
        self.ended.set()


def made(failures: list[str] | None = None) -> Courier:
    def tell(failure: Failure) -> Event:
        if failures is not None:
            failures.append(failure.error)
        return notifications._failed(system_clock, "hook", failure)

    return Courier("declarative-cron-test", tell)


def test_an_attempt_that_never_ends_is_told_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failures: list[str] = []
    sends, held, sent = made(failures), Held(), list[int]()
    sends.send(held)
    assert held.began.wait(TIMEOUT)
    monkeypatch.setattr(delivery, "LONGEST", 0.0)
    sends.send(partial(sent.append, 1))
    monkeypatch.undo()
    assert sends.finish(TIMEOUT)
    assert sent == [1]
    assert failures == ["it has not ended after 0 s, and is not waited for"]
    held.may_end.set()
    assert held.ended.wait(TIMEOUT)
    sends.send(partial(sent.append, 2))
    assert sends.finish(TIMEOUT)
    assert sent == [1, 2]


def test_so_many_that_never_end_and_no_more_have_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery, "LONGEST", 0.0)
    sends, all_held = made(), [Held() for _ in range(6)]
    for number, held in enumerate(all_held):
        sends.send(held)
        assert number > delivery._MOST_STUCK or held.began.wait(TIMEOUT)
    assert [held.began.is_set() for held in all_held] == [True] * 4 + [False] * 2
    for held in all_held:
        held.may_end.set()
    assert sends.finish(TIMEOUT)
    assert all_held[-1].ended.is_set()


def test_what_tells_of_one_thing_keeps_its_order_beside_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes, "MOST", 2)
    ways, held, sent = lanes.Lanes(made), Held(), list[str]()
    ways.send(held, "slow")
    assert held.began.wait(TIMEOUT)
    for whose in ("slow", "a", "b", "a"):
        ways.send(partial(sent.append, whose), whose)
    assert ways.couriers[1].finish(TIMEOUT)
    assert sent == ["a", "b", "a"]
    held.may_end.set()
    assert ways.couriers[0].finish(TIMEOUT)
    assert sent == ["a", "b", "a", "slow"]
    assert len(ways.couriers) == 2
