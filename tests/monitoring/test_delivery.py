"""Background delivery: order by key, isolation of slow and failing receivers, limits."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest

from django_declarative_cron.core.events import Event, NotificationFailed
from django_declarative_cron.monitoring import delivery
from django_declarative_cron.monitoring.delivery import Delivery, DeliveryError
from django_declarative_cron.runtime.clock import system_clock

from ..timeouts import TIMEOUT


class Held:
    """An attempt that does not end before a test lets it."""

    def __init__(self) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.began.set()
        assert self.may_end.wait(TIMEOUT)


def made(failures: list[tuple[str, int]] | None = None) -> Delivery:
    def failed(error: str, number: int) -> Event:
        if failures is not None:
            failures.append((error, number))
        at = system_clock.now()
        return NotificationFailed(at=at, channel="hook", error=error, failures=number)

    return Delivery("declarative-cron-test", failed)


def raises(error: BaseException) -> None:
    raise error


def test_messages_with_the_same_key_are_delivered_in_order() -> None:
    sender, held, sent = made(), Held(), list[str]()
    sender.send(held, "slow")
    assert held.began.wait(TIMEOUT)
    others = threading.Event()
    for key in ("slow", "a", "slow"):
        sender.send(partial(sent.append, key), key)
    sender.send(others.set, "a")
    assert others.wait(TIMEOUT)
    assert sent == ["a"]
    assert not sender.finish(0)
    held.may_end.set()
    assert sender.finish(TIMEOUT)
    assert sent == ["a", "slow", "slow"]


def test_threads_and_waiting_messages_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "MAX_THREADS", 2)
    monkeypatch.setattr(delivery, "MAX_WAITING", 3)
    sender, holds, sent = made(), [Held(), Held()], list[int]()
    for number, held in enumerate(holds):
        sender.send(held, f"held {number}")
        assert held.began.wait(TIMEOUT)
    for number in range(5):
        sender.send(partial(sent.append, number), str(number))
    assert sender._threads == 2
    assert sent == []
    for held in holds:
        held.may_end.set()
    assert sender.finish(TIMEOUT)
    assert sorted(sent) == [2, 3, 4]


@pytest.mark.parametrize("error", [DeliveryError("503"), ValueError("503"), SystemExit("503")])
def test_an_error_does_not_stop_the_next_message(error: BaseException) -> None:
    failures: list[tuple[str, int]] = []
    sender, sent = made(failures), list[int]()
    for _ in range(5):
        sender.send(partial(raises, error))
    sender.send(partial(sent.append, 1))
    sender.send(partial(raises, error))
    assert sender.finish(TIMEOUT)
    assert sent == [1]
    text = "503" if isinstance(error, DeliveryError) else f"{type(error).__name__}: 503"
    # The 1st, 2nd and 4th in a row are published; a success ends the row.
    assert failures == [(text, 1), (text, 2), (text, 4), (text, 1)]


def test_an_error_while_connections_are_closed_does_not_stop_the_next_message(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    closed = threading.Event()

    class Connections:
        def close_all(self) -> None:
            closed.set()
            raise OSError("the socket is gone")

    monkeypatch.setattr(delivery, "connections", Connections())
    sender, sent = made(), list[int]()
    for number in (1, 2):
        sender.send(partial(sent.append, number))
        assert sender.finish(TIMEOUT)
        assert closed.wait(TIMEOUT)
    assert sent == [1, 2]


def test_a_thread_that_cannot_start_is_reported_and_replaced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    sender, sent = made(), list[int]()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        sender.send(partial(sent.append, 1))
    assert "Starting a delivery thread failed" in caplog.text
    sender.send(partial(sent.append, 2))
    assert sender.finish(TIMEOUT)
    assert sent == [1, 2]


def test_a_forked_process_starts_threads_of_its_own() -> None:
    sender, held, sent = made(), Held(), list[int]()
    sender.send(held)
    assert held.began.wait(TIMEOUT)
    sender._pid -= 1
    sender.send(partial(sent.append, 1))
    assert sender.finish(TIMEOUT)
    assert sent == [1]
    held.may_end.set()
