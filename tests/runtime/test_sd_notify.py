"""What systemd hears, from a socket that stands in for it."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from django_declarative_cron.runtime.probes import Report
from django_declarative_cron.runtime.sd_notify import EVERY, Notifier
from django_declarative_cron.testing import ManualClock
from django_declarative_cron.testing.clock import instant

from ..process import Process
from .conftest import TIMEOUT

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="systemd is of Linux")

NAMES = ["path", *(["abstract"] if sys.platform == "linux" else [])]
FACTS = {"role": "leading", "tasks": 1, "running": 0}


class Manager:
    """The service manager's end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(TIMEOUT)
        self._socket.bind("\0" + name[1:] if name.startswith("@") else name)

    def hear(self) -> list[str]:
        """Wait for a message and give its lines."""
        return self._socket.recv(4096).decode().split("\n")

    def hears_nothing(self) -> bool:
        """Tell whether no message is waiting; one that was is ``last``."""
        self._socket.setblocking(False)
        try:
            self.last = self._socket.recv(4096).decode().split("\n")
        except BlockingIOError:
            return True
        return False

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=NAMES)
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    name = f"@ddc-{uuid4()}" if request.param == "abstract" else str(tmp_path / "notify")
    made = Manager(name)
    yield made
    made.close()


class Health:
    """A report that a test changes."""

    def __init__(self) -> None:
        self.now = Report(True, True, (), FACTS)

    def __call__(self) -> Report:
        return self.now


def notifier(health: Health, **environment: str) -> Notifier:
    return Notifier(health, ManualClock(instant("2024-01-01")), environment)


def test_what_changes_is_said_once_and_the_watchdog_fed_while_it_lives(manager: Manager) -> None:
    health = Health()
    told = notifier(health, NOTIFY_SOCKET=manager.name, WATCHDOG_USEC="10000000")
    told.look()
    assert manager.hear() == ["STATUS=leading, 1 task, 0 running", "WATCHDOG=1"]
    told.look()
    assert manager.hear() == ["WATCHDOG=1"]
    health.now = Report(False, False, ("the loop hangs",), FACTS | {"tasks": 2})
    told.look()
    assert manager.hear() == ["STATUS=leading, 2 tasks, 0 running; the loop hangs"]
    told.look()
    told.stopping()
    assert manager.hear() == ["STOPPING=1"]
    assert manager.hears_nothing()


def test_without_a_watchdog_only_the_status_is_said(manager: Manager) -> None:
    for extra in ({}, {"WATCHDOG_USEC": "nonsense"}, {"WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"}):
        notifier(Health(), NOTIFY_SOCKET=manager.name, **extra).look()
        assert manager.hear() == ["STATUS=leading, 1 task, 0 running"]


class Counting(ManualClock):
    """A clock that takes down how long others wait, and lets the third wait end it all."""

    def __init__(self) -> None:
        super().__init__(instant("2024-01-01"))
        self.waits: list[float] = []
        self.ended = threading.Event()

    def wait(self, event: object, seconds: float) -> bool:
        self.waits.append(seconds)
        if len(self.waits) == 3:
            self.ended.set()
        return self.ended.is_set()


@pytest.mark.parametrize(
    ("watchdog", "seconds"), [("", EVERY), ("3000000", 1.5), ("60000000", EVERY)]
)
def test_it_is_fed_twice_as_often_as_it_asks(tmp_path: Path, watchdog: str, seconds: float) -> None:
    manager, clock = Manager(str(tmp_path / "notify")), Counting()
    environment = {"NOTIFY_SOCKET": manager.name, "WATCHDOG_PID": str(os.getpid())}
    if watchdog:
        environment["WATCHDOG_USEC"] = watchdog
    Notifier(Health(), clock, environment).ready()
    assert manager.hear() == ["READY=1"]
    fed = [manager.hear() for _ in range(3 if watchdog else 1)]
    assert fed[0][0].startswith("STATUS=")
    assert all(lines[-1] == "WATCHDOG=1" for lines in fed) == bool(watchdog)
    assert clock.ended.wait(TIMEOUT)
    manager.close()
    assert set(clock.waits) == {seconds}


@pytest.mark.parametrize("name", ["", "vsock:2:1234", "relative/path"])
def test_nobody_is_told_where_there_is_nobody(name: str) -> None:
    told = notifier(Health(), NOTIFY_SOCKET=name)
    told.ready()
    told.look()
    told.stopping()


def test_a_manager_that_is_away_is_no_error(tmp_path: Path) -> None:
    told = notifier(Health(), NOTIFY_SOCKET=str(tmp_path / "gone"), WATCHDOG_USEC="1000000")
    told.look()
    told.stopping()


@pytest.mark.slow
@pytest.mark.alike
def test_a_service_tells_of_its_start_its_life_and_its_end(
    manager: Manager,
    start: Callable[..., Process],
) -> None:
    process = start(NOTIFY_SOCKET=manager.name, WATCHDOG_USEC="400000")
    assert manager.hear() == ["READY=1"]
    assert manager.hear()[-1] == "WATCHDOG=1"
    assert manager.hear()[-1] == "WATCHDOG=1"
    process.signal(signal.SIGTERM)
    assert process.exit_code() == 0, process.output
    heard: list[str] = []
    while not manager.hears_nothing():
        heard += manager.last
    assert "STOPPING=1" in heard
