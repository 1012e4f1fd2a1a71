"""Scheduler processes: started, stopped, killed, and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from .judges import Life


class Ship:
    """One ``runscheduler``."""

    def __init__(self, log: Path, environment: dict[str, str], grace: float) -> None:
        self._log = log
        self._is_up = False
        self._frozen: list[int] = []
        self.born = time.monotonic()
        self.died: float | None = None
        self.asked = self.is_stopped = False
        self.paused: list[tuple[float, float]] = []
        with log.open("ab") as output:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "django", "runscheduler", "--grace", str(grace)],
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def is_alive(self) -> bool:
        return self.died is None

    @property
    def is_up(self) -> bool:
        self._is_up = self._is_up or "Ctrl-C stops it" in self._log.read_text(errors="replace")
        return self._is_up

    def signal(self, number: signal.Signals) -> float:
        """Send a signal; return the monotonic second at which it was sent."""
        at = time.monotonic()
        self.child.send_signal(number)
        return at

    def kill(self) -> None:
        """End it without a word, and what it started with it where that ends by itself."""
        self.signal(signal.SIGKILL)
        self.child.wait()

    def lose(self) -> None:
        """End it and its watchdog process at once, as when their machine is gone."""
        watchdogs = self._children()
        self.signal(signal.SIGSTOP)
        for pid in watchdogs:
            os.kill(pid, signal.SIGKILL)
        self.kill()

    def freeze(self, *, whole: bool) -> float:
        """Stop it from running, and its watchdog process with it where a container is meant."""
        at = self.signal(signal.SIGSTOP)
        self._frozen = self._children() if whole else []
        for pid in self._frozen:
            os.kill(pid, signal.SIGSTOP)
        self.is_stopped = True
        return at

    def wake(self) -> float:
        for pid in self._frozen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        at = self.signal(signal.SIGCONT)
        self.is_stopped = False
        return at

    def _children(self) -> list[int]:
        try:
            text = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        except OSError:
            return []
        return [int(pid) for pid in text.split()]

    def ask(self) -> None:
        self.asked = True
        self.signal(signal.SIGTERM)

    def life(self, lease: float) -> Life:
        """Return what is known of it, with the pauses in which it may have been taken for dead.

        It renews three times in a lease: the newest sign of life may be a third of that old.
        """
        died = time.monotonic() if self.died is None else self.died
        paused = tuple((a, b) for a, b in self.paused if b - a > lease * 2 / 3)
        left = "did not end within the grace" in self._log.read_text(errors="replace")
        in_order = self.asked and self.child.returncode == 0 and not left
        return Life(self.pid, self.born, died, paused, not in_order)

    def _watch(self) -> None:
        self.child.wait()
        self.died = time.monotonic()


class Fleet:
    """So many schedulers, whatever happens to them; their logs go to a directory."""

    def __init__(
        self, size: int, directory: Path, environment: dict[str, str], grace: float
    ) -> None:
        self._size = size
        self._directory = directory
        self._environment = {**os.environ, **environment, "PYTHONUNBUFFERED": "1"}
        self._grace = grace
        self.ships: list[Ship] = []
        self.gone: list[Ship] = []
        self.exits: Counter[int] = Counter()

    def fill(self) -> None:
        """Put a new process in the place of each that has ended."""
        for ship in [each for each in self.ships if not each.is_alive]:
            self.ships.remove(ship)
            self.gone.append(ship)
            self.exits[ship.child.returncode] += 1
        while len(self.ships) < self._size:
            log = self._directory / f"scheduler-{len(self.ships) + len(self.gone):04}.log"
            self.ships.append(Ship(log, self._environment, self._grace))

    def awake(self) -> list[Ship]:
        """Return those that live, are not stopped and were not asked to end."""
        return [s for s in self.ships if s.is_alive and not s.is_stopped and not s.asked]

    def wait_until_up(self, patience: float) -> None:
        """Wait until all have initialised; whoever ends before is replaced."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and not all(ship.is_up for ship in self.ships):
            self.fill()
            time.sleep(0.05)

    def shut(self, patience: float) -> None:
        """Ask all to end, and wait; who does not is killed and counted as such."""
        for ship in self.ships:
            if ship.is_alive:
                ship.ask()
        deadline = time.monotonic() + patience
        for ship in self.ships:
            try:
                ship.child.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                ship.kill()
            while ship.is_alive:
                time.sleep(0.01)
        for ship in self.ships:
            self.exits[ship.child.returncode] += 1
        self.gone += self.ships
        self.ships = []

    def lives(self, lease: float) -> list[Life]:
        return [ship.life(lease) for ship in [*self.gone, *self.ships]]
