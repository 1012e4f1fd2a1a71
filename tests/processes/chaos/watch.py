"""Who leads, looked at all the time from outside, and how long nobody did."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import Error as DatabaseError
from django.db import connection

from django_declarative_cron.models import SchedulerInstance, SchedulerState

_EVERY = 0.05


@dataclass
class Vacancy:
    """A lead that was taken from a process.

    Args:
        kind: how.
        pid: of the process.
        at: monotonic second.
        disturbed: something else befell the others or the database meanwhile.
        seconds: until another led, ``None`` as long as none does.
        alone: nobody stood by who could have taken it.
        clock: the instant on the wall, to look it up in the logs.
    """

    kind: str
    pid: int
    at: float
    disturbed: bool = False
    seconds: float | None = None
    alone: bool = False
    clock: datetime = field(default_factory=datetime.now)


class Watch:
    """Look who leads in a thread of its own."""

    def __init__(self) -> None:
        self.leader: int | None = None
        self.terms = 0
        self.vacancies: list[Vacancy] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join()

    def vacate(self, kind: str, pid: int, at: float, *, alone: bool = False) -> None:
        """Take down that something befell a process; it counts where that one led."""
        if pid == self.leader and not self._open():
            self.vacancies.append(Vacancy(kind, pid, at, alone=alone))
        else:
            self.disturb()

    def disturb(self) -> None:
        """Take down that a lead which is open now is taken over under other trouble too."""
        for vacancy in self._open():
            vacancy.disturbed = True

    def seconds(self, kind: str, *, disturbed: bool = False) -> list[float]:
        """Give how long the lead was open, by how it came to be, in order."""
        return sorted(
            v.seconds
            for v in self.vacancies
            if v.kind == kind
            and v.seconds is not None
            and (disturbed or not (v.disturbed or v.alone))
        )

    def slowest(self, kind: str) -> list[Vacancy]:
        """Give the leads that were open for longest, by how that came to be."""
        closed = [v for v in self.vacancies if v.kind == kind and v.seconds is not None]
        return sorted(closed, key=lambda v: -(v.seconds or 0))[:3]

    def _open(self) -> list[Vacancy]:
        return [each for each in self.vacancies[-1:] if each.seconds is None]

    def _look_on(self) -> None:
        while not self._ended.wait(_EVERY):
            try:
                self._look()
            except DatabaseError:
                connection.close()
                self.disturb()
        connection.close()

    def _look(self) -> None:
        seen: Any = SchedulerState.objects.values_list("leader", "term").first()
        if seen is None:
            return
        leader, self.terms = seen
        pids = SchedulerInstance.objects.filter(id=leader).values_list("pid", flat=True)
        pid = pids.first() if leader else None
        for vacancy in self._open():
            if pid is not None and pid != vacancy.pid:
                vacancy.seconds = time.monotonic() - vacancy.at
        self.leader = pid
