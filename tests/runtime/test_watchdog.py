"""The watchdog process's watch over its scheduler, with a pipe in hand and no process."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from django_declarative_cron.core.options import Options
from django_declarative_cron.runtime import forking, watchdog
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.runtime.forking import out_of_the_way
from django_declarative_cron.runtime.watchdog import FAREWELL, Watch, WatchdogProcess
from django_declarative_cron.store import liveness
from django_declarative_cron.store.guard import Member

from ..store.conftest import Deployment

LINE = uuid.uuid4()


class Scheduler:
    """A scheduler as its watchdog process sees it."""

    def __init__(self) -> None:
        self.read, self.write = os.pipe()
        self.deeds: list[tuple[Any, uuid.UUID]] = []
        self.answers: list[bool] = []
        self.looks = 1000
        self.leaves_after: int | None = None

    def says(self, line: uuid.UUID | bytes) -> None:
        os.write(self.write, line if isinstance(line, bytes) else f"{line}\n".encode())

    def goes(self) -> None:
        """End: the pipe closes, and the next look finds nobody."""
        os.close(self.write)
        self.looks = 0

    def is_there(self) -> bool:
        self.looks -= 1
        return self.looks >= 0

    def do(self, deed: Any, member: Member, seconds: float) -> bool:
        """Take note of a deed; go after as many as was said."""
        self.deeds.append((deed, member.instance))
        if len(self.deeds) == self.leaves_after:
            self.looks = 0
        return self.answers.pop(0) if self.answers else True

    def watched(self, renew: float = 600.0, silence: float = 1800.0) -> list[tuple[Any, uuid.UUID]]:
        """Be watched to the end; give what was done."""
        span = {"lease": timedelta(seconds=silence), "renew": timedelta(seconds=renew)}
        member = replace(Deployment(0).member, instance=uuid.UUID(int=0), **span)
        Watch(member, system_clock, self.read, self.is_there, self.do).keep()
        return self.deeds


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    made = Scheduler()
    yield made
    os.close(made.read)


@pytest.mark.parametrize(
    ("lines", "then", "buried"),
    [
        ([LINE, FAREWELL], "stays", []),
        ([uuid.uuid4(), LINE], "is gone", [LINE]),
        ([LINE, FAREWELL], "closes and is gone", []),
        ([], "closes and is gone", []),
    ],
    ids=["after a farewell", "without one", "a farewell that is read too late", "never registered"],
)
def test_who_goes_without_a_farewell_is_buried(
    scheduler: Scheduler, lines: list[uuid.UUID | bytes], then: str, buried: list[uuid.UUID]
) -> None:
    for line in lines:
        scheduler.says(line)
    if then == "is gone":
        scheduler.looks = 1
    elif then == "closes and is gone":
        scheduler.goes()
    assert scheduler.watched() == [(liveness.give_up, line) for line in buried]


def test_a_database_that_does_not_answer_is_asked_again(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "_AGAIN", 0.0)
    scheduler.says(LINE)
    scheduler.looks = 1
    scheduler.answers = [False, False, True]
    assert scheduler.watched() == [(liveness.give_up, LINE)] * 3


def test_after_the_longest_silence_everybody_knows(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "_AGAIN", 0.01)
    scheduler.says(LINE)
    scheduler.looks = 1
    scheduler.answers = [False] * 1000
    deeds = scheduler.watched(renew=0.01, silence=0.05)
    assert 1 < len(deeds) <= 6


def test_a_line_that_is_overdue_is_vouched_for(scheduler: Scheduler) -> None:
    scheduler.says(LINE)
    scheduler.leaves_after = 3
    deeds = scheduler.watched(renew=0.01, silence=0.03)
    assert deeds == [(liveness.vouch, LINE)] * 3 + [(liveness.give_up, LINE)]


def test_a_pipe_that_is_closed_is_not_the_end(scheduler: Scheduler) -> None:
    scheduler.says(LINE)
    os.close(scheduler.write)
    scheduler.leaves_after = 2
    deeds = scheduler.watched(renew=0.01, silence=0.03)
    assert [deed for deed, _ in deeds] == [liveness.vouch, liveness.vouch, liveness.give_up]


@pytest.mark.parametrize(
    ("options", "platform", "has_fork"),
    [
        (Options(WATCHDOG_PROCESS=False), "linux", True),
        (Options(), "darwin", True),
        (Options(), "win32", False),
    ],
)
def test_where_nothing_can_be_forked_there_is_no_watchdog(
    options: Options, platform: str, has_fork: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    if not has_fork:
        monkeypatch.delattr(os, "fork", raising=False)
    assert watchdog.fork_watchdog(options, system_clock) is None


def test_a_system_without_room_for_a_process_goes_on_without_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watchdog, "close_every", lambda: None)

    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(watchdog, "can_fork", lambda: True)
    monkeypatch.setattr(forking, "fork", refuse)
    assert watchdog.fork_watchdog(Options(), system_clock) is None
    assert "the scheduler goes on without it" in caplog.text


@pytest.mark.skipif(not watchdog.can_fork(), reason="nothing is forked here")
@pytest.mark.parametrize(
    ("deed", "seconds", "done"),
    [
        (lambda member: None, 60.0, True),
        (lambda member: 1 / 0, 60.0, False),
        (lambda member: watchdog.select.select([], [], [], 60.0), 0.05, False),
    ],
    ids=["done", "failed", "without an answer"],
)
def test_a_deed_has_its_time(deed: Callable[[Member], object], seconds: float, done: bool) -> None:
    assert watchdog.do_in_child(deed, None, seconds) is done  # type: ignore[arg-type]


def test_a_file_that_took_the_number_of_a_closed_pipe_is_not_written_to(tmp_path: Path) -> None:
    read, write = os.pipe()
    child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    there = WatchdogProcess(child.pid, write, system_clock)
    os.close(write)
    member = replace(Deployment(0).member, instance=LINE)
    somebodys = os.open(tmp_path / "shop.sqlite3", os.O_RDWR | os.O_CREAT)
    os.dup2(somebodys, write)
    try:
        there.heard(member)
        child.kill()
        child.wait()
        there.dismiss()
        assert os.fstat(write).st_size == 0
    finally:
        for descriptor in {read, write, somebodys}:
            os.close(descriptor)


def test_descriptors_of_our_own_are_out_of_the_way() -> None:
    read, write = map(out_of_the_way, os.pipe())
    opened = os.open(os.devnull, os.O_RDONLY)
    assert opened < min(read, write)
    os.write(write, b"x")
    assert os.read(read, 1) == b"x"
    for descriptor in (read, write, opened):
        os.close(descriptor)
