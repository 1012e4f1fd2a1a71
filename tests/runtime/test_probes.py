"""``/live`` and ``/ready`` in every state and with hostile clients, and what systemd hears."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from socketserver import TCPServer
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError
from prometheus_client.parser import text_string_to_metric_families

from django_declarative_cron import Scheduler
from django_declarative_cron.runtime import engine, loop, probes
from django_declarative_cron.runtime.clock import SystemClock
from django_declarative_cron.runtime.loop import Loop
from django_declarative_cron.runtime.probes import Listener, Report, probe_pages
from django_declarative_cron.runtime.sd_notify import LONGEST_INTERVAL, Notifier

from ..process import Process
from ..timeouts import wait_until
from .conftest import TIMEOUT, Live, nothing

FACTS = {"role": "standby", "tasks": 3, "running": 1}


@pytest.fixture
def serve() -> Callable[..., int]:
    """Serve a report on a port of this machine."""

    def start(*, live: bool = True, ready: bool = True, reasons: tuple[str, ...] = ()) -> int:
        served = Listener(probe_pages(lambda: Report(live, ready, reasons, FACTS)))
        served.start("127.0.0.1", 0)
        return served.port

    return start


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)


def ask(port: int, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Give status, headers and body of the answer, which ends the connection."""
    with connect(port) as client, client.makefile("rb") as answer:
        client.sendall(request)
        head, _, body = answer.read().partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(first.split()[1]), headers, body


def get(port: int, path: str) -> tuple[int, dict[str, Any]]:
    status, headers, body = ask(port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert headers["content-type"] == "application/json"
    assert int(headers["content-length"]) == len(body)
    assert headers["cache-control"] == "no-store"
    return status, json.loads(body)


@pytest.mark.parametrize(
    ("live", "ready", "statuses"),
    [(True, True, (200, 200)), (True, False, (200, 503)), (False, False, (503, 503))],
)
def test_a_probe_is_told_whether_and_why(
    serve: Callable[..., int], live: bool, ready: bool, statuses: tuple[int, int]
) -> None:
    port = serve(live=live, ready=ready, reasons=("it rains",))
    for path, expected in zip(("/live", "/ready"), statuses, strict=True):
        status, body = get(port, path)
        assert status == expected
        assert body == {"live": live, "ready": ready, "reasons": ["it rains"], **FACTS}


def test_the_head_of_an_answer_alone(serve: Callable[..., int]) -> None:
    status, headers, body = ask(serve(), b"HEAD /ready?verbose=1 HTTP/1.0\r\n\r\n")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 0


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /metrics HTTP/1.1\r\n\r\n", 404),
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"GET /live/../ready HTTP/1.1\r\n\r\n", 404),
        (b"POST /live HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd", 501),
        (b"POST /live\r\n\r\n", 400),
        (b"GET http://x/live HTTP/1.1\r\n\r\n", 404),
        (b"\x16\x03\x01\x02\x00\xff\xfe\r\n\r\n", 400),
        (b"GET /live HTTP/1.1\r\nX: " + b"x" * 2**17 + b"\r\n\r\n", 431),
    ],
)
def test_anything_else_is_refused(serve: Callable[..., int], request_: bytes, status: int) -> None:
    port = serve()
    try:
        assert ask(port, request_)[0] == status
    except ConnectionResetError:
        # The answer may be lost to a client that is still talking.
        assert status == 431
    assert get(port, "/live")[0] == 200


def test_a_flood_of_silent_clients_takes_few_threads_and_probes_answer(
    serve: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes._Handler, "timeout", 0.2)
    port, threads = serve(), threading.active_count()
    flood = [connect(port) for _ in range(probes.MOST_CLIENTS * 2)]
    for client in flood:
        client.sendall(b"GET /live HT")
    assert get(port, "/live")[0] == 200
    assert threading.active_count() - threads <= probes.MOST_CLIENTS
    for client in flood:
        assert client.recv(1) == b""
        client.close()


def test_connections_that_the_system_refuses_are_logged_once_and_probes_recover(
    serve: Callable[..., int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refusals = iter([OSError(errno.EMFILE, "Too many open files")] * 4)

    def accept(server: Any) -> Any:
        for error in refusals:
            raise error
        return server.socket.accept()

    monkeypatch.setattr(probes, "ACCEPT_RETRY", 0.05)
    monkeypatch.setattr(TCPServer, "get_request", accept)
    assert get(serve(), "/live")[0] == 200
    assert next(refusals, None) is None
    (line,) = caplog.messages
    assert line.startswith("Accepting a connection of a probe")


def test_connections_do_not_reach_programs_that_a_run_starts(serve: Callable[..., int]) -> None:
    count = [sys.executable, "-c", "import os; print(len(os.listdir('/proc/self/fd')))"]

    def inherited() -> bytes:
        return subprocess.run(count, capture_output=True, close_fds=False, check=True).stdout

    before = inherited()
    with connect(serve()) as client:
        client.sendall(b"GET /live HT")
        assert inherited() == before


@pytest.mark.parametrize("host", ["", "127.0.0.1"])
def test_it_listens_where_it_is_told_to(host: str) -> None:
    served = Listener(probe_pages(lambda: Report(True, True, (), FACTS)))
    served.start(host, 0)
    assert get(served.port, "/ready")[0] == 200
    with pytest.raises(OSError):
        Listener({}).start(host, served.port)


# --- schedulers in every state ---


class Leaping(SystemClock):
    """The machine's clock, whose seconds a test moves on."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


@pytest.fixture
def clock() -> Leaping:
    return Leaping()


def found(scheduler: Scheduler) -> tuple[bool, bool, tuple[str, ...]]:
    report = probes.report(scheduler)
    return report.live, report.ready, report.reasons


def test_a_new_scheduler_is_alive_and_not_ready_unless_its_start_takes_too_long(
    clock: Leaping,
) -> None:
    scheduler = Scheduler(clock=clock)
    assert found(scheduler) == (True, False, ("not initialised yet",))
    clock.ahead = probes.LONGEST_START + 1
    live, ready, reasons = found(scheduler)
    assert (live, ready) == (False, False)
    assert "longer than it may" in reasons[0]


def test_a_running_scheduler_is_ready_until_it_stops(live: Live) -> None:
    live.start(never=nothing)
    wait_until(lambda: live.scheduler.pulse.last.passes)
    assert found(live.scheduler) == (True, True, ())
    assert probes.report(live.scheduler).facts["role"] == "leading"
    assert probes.report(live.scheduler).line == "leading, 1 task, 0 running"
    live.scheduler.stop()
    assert found(live.scheduler) == (True, False, ("stopping: nothing new starts",))


def test_without_a_database_it_is_alive_and_not_ready_until_it_comes_back(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = live.scheduler
    live.start(never=nothing)
    wait_until(lambda: probes.report(scheduler).ready)

    def away(*_: object) -> None:
        raise OperationalError("no route to db.internal as user shop")

    with monkeypatch.context() as outage:
        outage.setattr(engine, "peek", away)
        scheduler._engine.woken.set()
        live.until("PersistenceFailed")
        wait_until(lambda: not probes.report(scheduler).ready)
        # Whoever may probe need not know where the database is.
        reason = "the database refused the newest pass (OperationalError)"
        assert found(scheduler) == (True, False, (reason,))
    scheduler._engine.woken.set()
    wait_until(lambda: probes.report(scheduler).ready)


def test_a_pass_that_raises_is_not_ready(clock: Leaping) -> None:
    def fail() -> None:
        raise ValueError("a secret")

    loop = Loop(clock, fail, threading.Event(), lambda: 1.0)
    loop.start()
    wait_until(lambda: loop.pulse.last.passes)
    assert loop.pulse.last.refused == "ValueError"
    loop.stop()


def test_a_loop_that_hangs_is_not_alive(
    live: Live, clock: Leaping, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs, go_on, look = threading.Event(), threading.Event(), engine.peek

    def hang(*given: Any) -> Any:
        hangs.set()
        go_on.wait(TIMEOUT)
        return look(*given)

    monkeypatch.setattr(engine, "peek", hang)
    live.scheduler = Scheduler(clock=clock)
    live.start(never=nothing)
    try:
        assert hangs.wait(TIMEOUT)
        assert probes.report(live.scheduler).live
        clock.ahead = loop.LIMIT + 1
        is_live, is_ready, (reason,) = found(live.scheduler)
        assert (is_live, is_ready) == (False, False)
        assert "has not turned for 31 s (the limit is 30 s)" in reason
    finally:
        go_on.set()
    wait_until(lambda: probes.report(live.scheduler).live)


def test_a_loop_that_has_ended_is_not_alive(live: Live) -> None:
    live.start(never=nothing)
    live.scheduler._loop.stop()
    assert found(live.scheduler) == (False, False, ("the loop or the heartbeat has ended",))
    live.scheduler._loop.start()


def test_an_idle_loop_sleeps_for_as_long_as_it_likes(clock: Leaping) -> None:
    loop = Loop(clock, nothing, threading.Event(), lambda: threading.TIMEOUT_MAX)
    loop.start()
    wait_until(lambda: loop.pulse.last.passes)
    clock.ahead = 1_000_000.0
    assert not loop.pulse.is_late()
    loop.stop()


@pytest.mark.slow
def test_a_leader_and_a_standby_answer_probes(start: Callable[..., Process]) -> None:
    """P34."""
    processes = [start("--health-port", "0", "--metrics-port", "0") for _ in range(2)]
    for process in processes:
        process.up()
    ports = [_port(process) for process in processes]
    for port in ports:
        wait_until(lambda port=port: _get(port, "ready")[0] == 200)
        wait_until(lambda port=port: _get(port, "live")[0] == 200)
    both = {"leading", "standby"}
    wait_until(lambda: {_get(port, "ready")[1].get("role") for port in ports} == both)
    metrics = [_port(process, "Metrics:") for process in processes]
    wait_until(lambda: sorted(map(_leading, metrics)) == [0.0, 1.0])
    for process in processes:
        process.stop()


def _leading(port: int) -> float:
    """Return the metric; -1 where a busy process closed the connection after its limit."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=TIMEOUT) as answer:
            text = answer.read().decode()
    except ConnectionError:
        return -1.0
    for family in text_string_to_metric_families(text):
        if family.name == "declarative_cron_leading":
            return float(family.samples[0].value)
    raise AssertionError("the metric is not there")


def _port(process: Process, kind: str = "Probes:") -> int:
    (line,) = (line for line in process.lines if line.startswith(kind))
    return int(line.rstrip(".\n").rpartition(" ")[2])


def _get(port: int, path: str) -> tuple[int, Any]:
    """Return status and body; 0 where a busy process closed the connection after its limit."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=TIMEOUT) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
    except ConnectionError:
        return 0, {}


# --- what systemd hears, from a socket that stands in for it ---

NAMES = ["path"] * hasattr(socket, "AF_UNIX") + ["abstract"] * (sys.platform == "linux")


class Manager:
    def __init__(self, name: str) -> None:
        self.name = name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(TIMEOUT)
        self._socket.bind("\0" + name[1:] if name.startswith("@") else name)

    def hear(self) -> list[str]:
        """Wait for a message, and return its lines."""
        return self._socket.recv(4096).decode().split("\n")

    def hear_the_rest(self) -> list[str]:
        """Return the lines of all messages that are waiting."""
        self._socket.setblocking(False)
        lines: list[str] = []
        with suppress(BlockingIOError):
            while True:
                lines += self.hear()
        return lines

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=NAMES)
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    name = f"@ddc-{uuid4()}" if request.param == "abstract" else str(tmp_path / "notify")
    made = Manager(name)
    yield made
    made.close()


LEADING = {"role": "leading", "tasks": 1, "running": 0}
HEALTHY = Report(True, True, (), LEADING)


def notifier(**environment: str) -> Notifier:
    return Notifier(environment)


def test_what_changes_is_said_once_and_the_watchdog_fed_while_it_lives(manager: Manager) -> None:
    told = notifier(NOTIFY_SOCKET=manager.name, WATCHDOG_USEC="10000000")
    told.look(HEALTHY)
    assert manager.hear() == ["STATUS=leading, 1 task, 0 running", "WATCHDOG=1"]
    told.look(HEALTHY)
    assert manager.hear() == ["WATCHDOG=1"]
    hangs = Report(False, False, ("the loop hangs",), LEADING | {"tasks": 2})
    told.look(hangs)
    assert manager.hear() == ["STATUS=leading, 2 tasks, 0 running; the loop hangs"]
    told.look(hangs)
    told.stopping()
    assert manager.hear() == ["STOPPING=1"]
    assert manager.hear_the_rest() == []


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


@pytest.mark.parametrize("name", ["", "vsock:2:1234", "relative/path", "/nowhere/notify"])
def test_nobody_is_told_where_there_is_nobody(name: str) -> None:
    told = notifier(NOTIFY_SOCKET=name, WATCHDOG_USEC="1000000")
    told.ready()
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
    process.stop()
    assert "STOPPING=1" in manager.hear_the_rest()
