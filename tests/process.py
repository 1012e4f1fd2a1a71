"""A scheduler in a process of its own, whose output is read as it comes."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

PATIENCE = 30.0


class Process:
    """A ``runscheduler`` whose output is read as it comes."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self._news = threading.Condition()
        self.lines: list[str] = []
        self.child = subprocess.Popen(
            [sys.executable, "-m", "django", "runscheduler", *arguments],
            env=environment,
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
            assert self._news.wait_for(said, PATIENCE), (text, self.lines)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.child.send_signal(number)

    def exit_code(self) -> int:
        """Wait for the end."""
        code = self.child.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    @property
    def output(self) -> str:
        """Give all it said."""
        return "".join(self.lines)
