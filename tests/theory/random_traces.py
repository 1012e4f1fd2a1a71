"""Random traces: some sense in them, so that obligations arise, and much nonsense.

Pulses are stated, and all minute starts are, so that both sides number positions alike. A minute
starts at one position only: the judge looks at instants there, the formulas at positions.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

from .formulas import MINUTE, Event, Registrations, Task, Trace
from .notation import Record, at

A = Task("a", "1 * * * *", 90)
A2 = Task("a", "2 * * * *", 90)
B = Task("b", "3 * * * *", 0)
C = Task("c", "4 * * * *", 45)
LISTS: list[Registrations] = [(A,), (A2,), (A, B), (A2, B), (B, C), (A, B, C), ()]
NAMES = ("a", "b", "c")
STEPS = (0, 0, 1, 1, 5, 20, 45)


class Writer:
    """Write down one random trace."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.second = 0
        self.minute = 0
        self.trace: Trace = []
        self.retries: list[tuple[int, Task]] = []
        self.registered: dict[str, Task] = {}
        self.known: dict[str, Task] = {}
        self.run_as: dict[str, Task] = {}
        self.owed: set[str] = set()
        self.list: Registrations = LISTS[0]

    def write(self, length: int) -> Trace:
        while len(self.trace) < length:
            self._pass_time()
            self._act()
        self._pass_time()
        self._put([("SE", None)])
        return self.trace

    # --- time and its pulses ---

    def _pass_time(self) -> None:
        until = self.second + self.random.choice(STEPS)
        while (pulse := self._next_pulse()) is not None and pulse <= until:
            self.second = pulse
            self._pulse()
        self.second = until

    def _next_pulse(self) -> int | None:
        return min([self.minute + MINUTE, *(second for second, _ in self.retries)])

    def _pulse(self) -> None:
        events: list[Event] = [
            ("RetryDue", task) for second, task in self.retries if second == self.second
        ]
        self.retries = [each for each in self.retries if each[0] != self.second]
        if self.second == self.minute + MINUTE:
            self.minute = self.second
            events.append(("Tick", None))
            events += [("Due", task) for task in (A, A2, B, C) if self.random.random() < 0.5]
        self._put(events)

    # --- what happens ---

    def _act(self) -> None:
        together = 1 if self.random.random() < 0.85 else self.random.choice((2, 3))
        events = [self._one() for _ in range(together)]
        first_list = next((event for event in events if event[0] == "IEs"), None)
        self._put([event for event in events if event[0] != "IEs" or event == first_list])

    def _one(self) -> Event:
        kinds = ("IS", "IEs", "IEf", "SS", "SE", "RS", "REs", "REf", "Crash", "Due")
        (kind,) = self.random.choices(kinds, weights=(2, 6, 1, 2, 2, 9, 8, 6, 2, 1))
        if kind in ("IS", "IEs", "IEf"):
            self.list = self.list if self.random.random() < 0.3 else self.random.choice(LISTS)
            return kind, self.list
        if kind in ("RS", "REs", "REf"):
            return kind, self._task(kind)
        if kind == "Due":
            due = self.random.choice((A, A2, B, C))
            return ("Due", due) if self.second % MINUTE else ("SE", None)
        return kind, None

    def _task(self, kind: str) -> Task:
        """Give the task that a record with nothing but a name is of."""
        likely = [name for name in NAMES if name in (self.owed if kind == "RS" else self.run_as)]
        name = self.random.choice(likely if likely and self.random.random() < 0.8 else NAMES)
        task = self.known.setdefault(name, Task(name, None, None))
        return task if kind == "RS" else self.run_as.get(name, task)

    def _put(self, events: list[Event]) -> None:
        self.trace.append((self.second, frozenset(events)))
        for kind, of in events:
            if kind == "IEs":
                assert isinstance(of, tuple)
                self.known |= {each.name: each for each in of if isinstance(each, Task)}
            elif kind in ("Due", "RetryDue"):
                assert isinstance(of, Task)
                self.owed.add(of.name)
            elif kind == "RS":
                assert isinstance(of, Task)
                self.run_as[of.name] = of
                self.owed.discard(of.name)
            elif kind == "REf":
                assert isinstance(of, Task)
                self._retry(of)

    def _retry(self, task: Task) -> None:
        if task.delay is not None:
            self.retries.append((self.second + task.delay, task))


def records(trace: Trace) -> list[Record]:
    """Give a trace as the judge reads it."""
    return [
        {"at": at(second), "position": position, **_record(event)}
        for position, (second, events) in enumerate(trace)
        for event in sorted(events, key=repr)
    ]


def _record(event: Event) -> dict[str, Any]:
    kind, of = event
    if isinstance(of, Task):
        return {"event": kind, "task": of.name, "cron": of.cron}
    if of is None:
        return {"event": kind}
    return {"event": kind, "registrations": [_registration(each) for each in of]}


def _registration(task: Task) -> Record:
    assert task.delay is not None
    delay = timedelta(seconds=task.delay)
    return {"name": task.name, "cron": task.cron, "retry_delay": delay}
