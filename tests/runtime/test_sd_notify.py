"""What systemd hears, from a socket that stands in for it."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from django_declarative_cron.runtime.probes import Report
from django_declarative_cron.runtime.sd_notify import LONGEST_INTERVAL, Notifier

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


HEALTHY = Report(True, True, (), FACTS)


def notifier(**environment: str) -> Notifier:
    return Notifier(environment)


def test_what_changes_is_said_once_and_the_watchdog_fed_while_it_lives(manager: Manager) -> None:
    told = notifier(NOTIFY_SOCKET=manager.name, WATCHDOG_USEC="10000000")
    told.look(HEALTHY)
    assert manager.hear() == ["STATUS=leading, 1 task, 0 running", "WATCHDOG=1"]
    told.look(HEALTHY)
    assert manager.hear() == ["WATCHDOG=1"]
    hangs = Report(False, False, ("the loop hangs",), FACTS | {"tasks": 2})
    told.look(hangs)
    assert manager.hear() == ["STATUS=leading, 2 tasks, 0 running; the loop hangs"]
    told.look(hangs)
    told.stopping()
    assert manager.hear() == ["STOPPING=1"]
    assert manager.hears_nothing()


def test_without_a_watchdog_only_the_status_is_said(manager: Manager) -> None:
    for extra in ({}, {"WATCHDOG_USEC": "nonsense"}, {"WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"}):
        notifier(NOTIFY_SOCKET=manager.name, **extra).look(HEALTHY)
        assert manager.hear() == ["STATUS=leading, 1 task, 0 running"]


@pytest.mark.parametrize(
    ("watchdog", "seconds"),
    [("0", LONGEST_INTERVAL), ("600000", 0.3), ("60000000", LONGEST_INTERVAL)],
)
def test_it_is_fed_at_least_twice_as_often_as_it_asks(watchdog: str, seconds: float) -> None:
    environment = {"WATCHDOG_USEC": watchdog, "WATCHDOG_PID": str(os.getpid())}
    assert notifier(**environment).interval == seconds


@pytest.mark.parametrize("name", ["", "vsock:2:1234", "relative/path"])
def test_nobody_is_told_where_there_is_nobody(name: str) -> None:
    told = notifier(NOTIFY_SOCKET=name)
    told.ready()
    told.look(HEALTHY)
    told.stopping()


def test_a_manager_that_is_away_is_no_error(tmp_path: Path) -> None:
    told = notifier(NOTIFY_SOCKET=str(tmp_path / "gone"), WATCHDOG_USEC="1000000")
    told.look(HEALTHY)
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
