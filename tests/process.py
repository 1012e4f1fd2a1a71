"""Processes of tests: calls of Python, and a scheduler whose output is read as it comes."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from .timeouts import TIMEOUT, wait_until


def run_python(
    *words: str, env: dict[str, str], timeout: float = TIMEOUT
) -> subprocess.CompletedProcess[str]:
    """Call Python with such words, and return what it wrote."""
    return subprocess.run(
        [sys.executable, *words], env=env, capture_output=True, text=True, timeout=timeout
    )


class Process:
    """A ``runscheduler`` whose output is read as it comes."""

    def __init__(
        self,
        environment: dict[str, str],
        *arguments: str,
        python: Sequence[str] = (sys.executable, "-m", "django"),
    ) -> None:
        self._news = threading.Condition()
        self._mark = f"DDC_TEST_PROCESS={uuid.uuid4()}"
        self.lines: list[str] = []
        self.child = subprocess.Popen(
            [*python, "runscheduler", "-v", "2", *arguments],
            env={**environment, **dict([self._mark.split("=")])},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        with self.child.stdout as output:
            for line in output:
                with self._news:
                    self.lines.append(line)
                    self._news.notify_all()

    def wait_for(self, text: str, count: int = 1) -> None:
        """Wait until a text stands in so many lines of the output."""

        def said() -> bool:
            return sum(text in line for line in self.lines) >= count

        with self._news:
            assert self._news.wait_for(said, TIMEOUT), (text, self.lines)

    def up(self) -> Self:
        """Wait until it has initialised."""
        self.wait_for("SIGTERM or Ctrl-C stops it")
        return self

    def stop(self) -> None:
        """Ask it to end, and wait until it has done so in order."""
        self.signal(signal.SIGTERM)
        assert self.exit_code() == 0, self.output

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.child.send_signal(number)

    def exit_code(self) -> int:
        """Wait for the end."""
        code = self.child.wait(TIMEOUT)
        self._reader.join(TIMEOUT)
        return code

    def watchdogs_left(self) -> list[int]:
        """Give the process ids of its watchdog process and of that one's children."""
        return [
            int(status.parent.name)
            for status in Path("/proc").glob("[0-9]*/comm")
            if _reads(status) == "cron-watchdog\n"
            and self._mark in _reads(status.with_name("environ"))
        ]

    def kill(self) -> None:
        """End it, and wait until its watchdog process writes nothing more of it."""
        self.child.kill()
        self.exit_code()
        wait_until(lambda: not self.watchdogs_left(), "the end of the watchdog process")

    @property
    def output(self) -> str:
        """Give all it said."""
        return "".join(self.lines)


def is_running(pid: int) -> bool:
    """Tell whether a process is there and no zombie."""
    return _reads(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()[:1] not in ([], ["Z"])


def _reads(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
