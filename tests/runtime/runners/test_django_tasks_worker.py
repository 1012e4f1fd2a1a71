"""A worker's own signals are its own, and are noted while it calls a run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from django_declarative_cron.runtime.runners import django_tasks_worker


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """Give what the worker's handler hears."""
    numbers: list[int] = []

    def handler(number: int, frame: Any) -> None:
        numbers.append(number)

    before = signal.signal(signal.SIGTERM, handler)
    yield numbers
    signal.signal(signal.SIGTERM, before)


def test_a_signal_is_noted_and_handled_as_ever(heard: list[int]) -> None:
    stops: list[int] = []
    handler = signal.getsignal(signal.SIGTERM)
    with django_tasks_worker._noted(stops):
        signal.raise_signal(signal.SIGTERM)
    assert (stops, heard) == ([signal.SIGTERM], [signal.SIGTERM])
    assert signal.getsignal(signal.SIGTERM) is handler
    signal.raise_signal(signal.SIGTERM)
    assert (stops, heard) == ([signal.SIGTERM], [signal.SIGTERM, signal.SIGTERM])


def test_a_handler_of_the_callbacks_own_stays(heard: list[int]) -> None:
    with django_tasks_worker._noted([]):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_what_ends_a_worker_without_a_handler_goes_on_to() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with django_tasks_worker._noted([]):
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_have_no_signals(heard: list[int]) -> None:
    handler, inside = signal.getsignal(signal.SIGTERM), list[Any]()

    def called() -> None:
        with django_tasks_worker._noted([]):
            inside.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=called)
    thread.start()
    thread.join()
    assert inside == [handler]
