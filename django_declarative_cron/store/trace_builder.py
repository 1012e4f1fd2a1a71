"""Build event records from the values read from the rows, in order; pure.

Runs are told in the order of their rows, which is the order they were committed in; everything
else goes between them by its instant, a registration set by the run before it. Memory grows with
the tasks, the instances and people's acts, not with the runs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from ..core.overlap import QUEUEING
from .trace_values import (
    Absences,
    Act,
    Agenda,
    Busy,
    Cause,
    Entry,
    Flights,
    Presence,
    Ran,
    Rank,
    Record,
    Registered,
    Span,
    Step,
    frozen,
    lived_twice,
)


@dataclass(frozen=True, slots=True)
class Sources:
    """The values read from the rows; long sequences are iterated over once.

    Args:
        runs: the runs that started, in the order of their rows.
        begun: the start of the complete history, of tasks with pruned runs.
        workers: the instances that call what schedulers hand to them.
    """

    presences: list[Presence]
    sets: Iterable[Registered]
    acts: Iterable[Act]
    runs: Iterable[Ran]
    begun: Mapping[str, datetime]
    workers: Collection[UUID] = ()


class History:
    """The history of a deployment, read once; without ``since``, from the first presence on."""

    def __init__(self, sources: Sources, *, since: datetime | None, until: datetime) -> None:
        self.until = until
        self.set_aside: Counter[Cause] = Counter()
        self.runs = 0
        self._sources = sources
        self._since = since
        self._absences = Absences(sources.begun)
        self._agenda = Agenda()
        self._writer = Writer()
        self._sets = iter(sources.sets)
        self._next_set = next(self._sets, None)
        self._set_in_hand: Registered | None = None
        self._entries: Mapping[str, Entry] = {}
        self._is_torn = False
        self._presences = {life.instance: each for each in sources.presences for life in each.lives}
        self._present: Presence | None = None
        self._is_active = False
        self._list_changed_at: datetime | None = None
        self._busy = Flights(sources.workers)
        self._lived_until: datetime | None = None

    @property
    def is_empty(self) -> bool:
        return not self._sources.presences

    @property
    def begins(self) -> datetime | None:
        """Return the first instant that it tells of."""
        if self.is_empty:
            return None
        first = self._sources.presences[0].began
        return first if self._since is None else max(first, self._since)

    @property
    def away(self) -> list[str]:
        """Return the tasks that were out of sight when it ended."""
        return sorted(name for name in self._absences if name in self._entries)

    def records(self) -> Iterator[Record]:
        """Return the event records, oldest first, closed by a ``Tick``."""
        self._plan()
        for run in self._sources.runs:
            number = self._number_at(run)
            while self._next_set is not None and self._next_set.after_run < run.id:
                yield from self._take_next_set(self._next_set)
            if self._may_have_waited(run):
                # Its row is as old as its waiting: later rows may tell of earlier starts.
                self._agenda.add(run.started_at, Rank.ACT, partial(self._starts_then, run))
                continue
            yield from self._up_to(run.started_at, number)
            yield from self._starts(run)
        while self._next_set is not None:
            yield from self._take_next_set(self._next_set)
        yield from self._up_to(self.until + TICK, -1)
        yield from self._write(self.until, "Tick")

    def _up_to(self, at: datetime, presence: int) -> Iterator[Record]:
        """Return the records before an event; changes of the list of one instant go together."""
        for item in self._agenda.up_to(at, presence):
            if self._list_changed_at != item.at:
                yield from self._flush_list()
            yield from item.telling(item.at)
        if self._list_changed_at != at:
            yield from self._flush_list()

    def _plan(self) -> None:
        add = self._agenda.add
        for each in self._sources.presences:
            steps = (each.began, self._begins), (each.asked, self._asked), (each.ended, self._ends)
            for step, (at, telling) in zip(Step, steps, strict=True):
                if at is not None:
                    add(at, Rank.PRESENCE, partial(telling, each), each.number, step)
        for act in self._sources.acts:
            add(act.at, Rank.ACT, partial(self._acts, act))
        if self._since is not None:
            self._writer.is_muted = True
            add(self._since, Rank.END, self._is_first_seen)

    def _number_of(self, instance: UUID | None) -> int:
        """Return the number of the presence of an instance, of the present one where it is gone."""
        presence = self._presences.get(instance) if instance is not None else self._present
        return -1 if presence is None else presence.number

    def _number_at(self, run: Ran) -> int:
        """Return the number of the presence that started a run: workers come and go beside it."""
        if not self._busy.handed(run):
            return self._number_of(run.instance)
        presences = self._sources.presences
        return bisect_right(presences, run.started_at, key=lambda each: each.began) - 1

    # --- the scheduler ---

    def _begins(self, presence: Presence, at: datetime) -> Iterator[Record]:
        self._present, self._is_active = presence, True
        self._writer.freeze(frozen(presence))
        for since, until in lived_twice(presence):
            self._agenda.add(since, Rank.ACT, partial(self._lives_twice, until))
        # A set that comes with the first instance says it itself.
        coming = self._set_in_hand
        if coming is None or (coming.at, self._number_of(coming.instance)) != (at, presence.number):
            yield from self._initialized(at)
        self._expect(self._absences, at)

    def _asked(self, presence: Presence, at: datetime) -> Iterator[Record]:
        yield from self._write(at, "SS")
        self._is_active = False
        untold_until = self._busy.untold_until()
        if untold_until is not None:
            self._writer.freeze([(at, untold_until)])

    def _ends(self, presence: Presence, at: datetime) -> Iterator[Record]:
        yield from self._write(at, "SE" if presence.is_orderly else "Crash")
        self._is_active = False
        self._busy.left()

    def _is_first_seen(self, at: datetime) -> Iterator[Record]:
        """Begin the trace; earlier pending occurrences are unknown."""
        self._writer.is_muted = False
        self._leave(self._entries, "start", at)
        self._list_changed_at = None
        if self._is_active:
            yield from self._initialized(at)
        self._expect(self._entries, at)

    def _lives_twice(self, until: datetime, at: datetime) -> Iterable[Record]:
        """Mark all tasks as absent while the clock repeats minutes."""
        self._lived_until = max(until, self._lived_until or until)
        if self._leave(self._entries, "clock", until):
            self._change_list(at)
        self._expect(self._entries, at)
        return ()

    # --- registrations ---

    def _take_next_set(self, registered: Registered) -> Iterator[Record]:
        self._set_in_hand, self._next_set = registered, next(self._sets, None)
        yield from self._up_to(registered.at, self._number_of(registered.instance))
        self._set_in_hand = None
        yield from self._flush_list()
        self._register(registered.entries, registered.at)
        self._is_torn = registered.is_torn
        if self._is_active:
            yield from self._initialized(registered.at)
        self._expect(self._absences, registered.at)

    def _register(self, entries: Mapping[str, Entry], at: datetime) -> None:
        before, self._entries = self._entries, entries
        for name, entry in entries.items():
            known = before.get(name)
            if not entry.is_enabled:
                self._absences.disable(name, at)
            elif entry.is_fresh and known is not None and known.identity == entry.identity:
                # Nothing new was declared: its row had been lost or damaged.
                self._absences.leave(name, "rows", at)
            elif known is not None and not entry.is_fresh and known.offset != entry.offset:
                self._absences.leave(name, "people", at)
        self._absences.enable([each.name for each in entries.values() if each.is_enabled], at)
        if self._lived_until is not None and at <= self._lived_until:
            self._leave(entries, "clock", self._lived_until)

    def _initialized(self, at: datetime) -> Iterator[Record]:
        yield from self._write(at, "IS", registrations=self._list())
        yield from self._write(at, "IEs", registrations=self._list())

    def _list(self) -> list[Record]:
        return [entry.record for name, entry in self._entries.items() if name not in self._absences]

    # --- absent tasks ---

    def _acts(self, act: Act, at: datetime) -> Iterable[Record]:
        name, was_here = act.task, False
        match act.kind:
            case "pause":
                was_here = self._absences.pause(name, at, act.until)
            case "resume":
                self._absences.resume(name, at)
            case "clear_retry":
                was_here = self._absences.leave(name, "people", at)
            case "left_out":
                was_here = self._absences.leave(name, "people", act.until or at)
            case "cancel" | "skip" | "unskip" | "backfill":
                return ()  # The result is in the row of the run, or of the occurrence.
        if was_here:
            self._change_list(at)
        self._expect([name], at)
        return ()

    def _leave(self, names: Iterable[str], cause: Cause, after: datetime) -> bool:
        left = [name for name in names if self._absences.leave(name, cause, after)]
        return bool(left)

    def _expect(self, names: Iterable[str], now: datetime) -> None:
        """Plan the return of absent tasks, if nothing prevents it."""
        for name in names if self._is_active else ():
            absence, entry = self._absences.get(name), self._entries.get(name)
            if absence is None or entry is None or absence.expected is not None:
                continue
            after = None if name in self._busy else absence.ready_after(now)
            absence.expected = None if after is None else entry.next_after(after)
            if absence.expected is not None:
                telling = partial(self._returns, name, absence.expected)
                self._agenda.add(absence.expected - TICK, Rank.RETURN, telling)

    def _returns(self, name: str, due: datetime, at: datetime) -> Iterable[Record]:
        """Put a task back on the list just before an occurrence; from then on it counts."""
        absence = self._absences.get(name)
        if absence is None or absence.expected != due:
            return ()
        absence.expected = None
        if self._is_active and name in self._entries and name not in self._busy:
            del self._absences[name]
            self._change_list(at)
        return ()

    def _change_list(self, at: datetime) -> None:
        """Remember that the list is another one, where there is somebody to know."""
        if self._is_active:
            self._list_changed_at = at

    def _flush_list(self) -> Iterator[Record]:
        at, self._list_changed_at = self._list_changed_at, None
        if at is not None:
            yield from self._writer.write(at, "IEs", registrations=self._list())

    def _write(self, at: datetime, event: str, **values: object) -> Iterator[Record]:
        yield from self._flush_list()
        yield from self._writer.write(at, event, **values)

    # --- runs ---

    def _may_have_waited(self, run: Ran) -> bool:
        entry = self._entries.get(run.task)
        return entry is not None and entry.data.get("overlap_policy") in QUEUEING

    def _starts_then(self, run: Ran, at: datetime) -> Iterator[Record]:
        yield from self._starts(run)

    def _starts(self, run: Ran) -> Iterator[Record]:
        name, at = run.task, run.started_at
        if self._leaves_by(run):
            self._change_list(at)
        is_told = not self._writer.is_muted and name not in self._absences
        handed = self._busy.handed(run)
        if is_told:
            yield from self._write(at, "RS", task=name, **handed)
        self._count(name)
        ended = ending(run, self._present, self.until, handed)
        if ended.at is not None:
            self._agenda.add(ended.at, Rank.END, partial(self._ended, run, ended, is_told))
        self._busy[name] = Busy(run.id, ended.at or self.until, is_told, bool(handed))

    def _leaves_by(self, run: Ran) -> bool:
        """Mark a task as absent after a start outside of the theory."""
        if run.is_torn or (self._is_torn and run.task not in self._entries):
            return self._absences.leave(run.task, "rows", run.started_at)
        if run.reason in ("manual", "backfill"):
            return self._absences.leave(run.task, "people", run.started_at)
        if run.instance not in self._presences and not self._is_active:
            return self._absences.leave(run.task, "rows", run.started_at)
        return False

    def _count(self, name: str) -> None:
        absence = self._absences.get(name)
        if not self._writer.is_muted:
            self.runs += 1
            if absence is not None:
                self.set_aside[absence.cause] += 1

    def _ended(self, run: Ran, ended: Ending, is_told: bool, at: datetime) -> Iterator[Record]:
        self._busy.end(run)
        if is_told:
            yield from self._write(at, ended.event, task=run.task, **ended.values)
        self._expect([run.task], at)


TICK = timedelta(microseconds=1)


class Writer:
    """Word records; an instant never lies before the one of the record before.

    A freeze is cut at an event in it: a process that acts is not frozen.
    """

    def __init__(self) -> None:
        self.is_muted = False
        self._last = datetime.min.replace(tzinfo=UTC)
        self._frozen: deque[Span] = deque()

    def freeze(self, spans: Iterable[Span]) -> None:
        self._frozen = deque(sorted([*self._frozen, *spans]))

    def write(self, at: datetime, event: str, **values: Any) -> Iterator[Record]:
        """Return a record, and the freezes before it."""
        if self.is_muted:
            return
        at = max(at, self._last)
        yield from self._freezes(at)
        self._last = at
        yield {"at": at, "event": event, **values}

    def _freezes(self, at: datetime) -> Iterator[Record]:
        while self._frozen and self._frozen[0][0] < at:
            since, until = self._frozen[0]
            since, thawed = max(since, self._last + TICK), min(until, at)
            if since < thawed:
                yield {"at": since, "event": "Freeze", "until": thawed}
            if until > at:
                return
            self._frozen.popleft()


class Ending(NamedTuple):
    """How a run ended.

    Args:
        at: when, ``None`` where it goes on, or ends with the crash of all instances.
        event: its name in the alphabet.
        values: further values of its record.
    """

    at: datetime | None
    event: str
    values: Record


def ending(run: Ran, presence: Presence | None, until: datetime, handed: Record) -> Ending:
    """Return the end of a run in the terms of the theory."""
    at, values = run.finished_at, {**handed}
    is_lost = at is None and presence is not None and _is_lost(run, presence)
    if is_lost or (run.outcome == "interrupted" and at is not None):
        # Found by a survivor, it is a failure; its retry is due when it is found, which may be
        # the survivor's last act. With the last instance gone, the crash says it all.
        found_at = at or until
        values["retry_at"] = found_at
        if presence is not None and not handed and _outlived_all(run, presence, found_at):
            at = presence.ended if presence.is_orderly else None
    return Ending(at, "REs" if run.outcome == "succeeded" else "REf", values)


def _outlived_all(run: Ran, presence: Presence, found_at: datetime) -> bool:
    """Return whether no other instance can have found a run."""
    if presence.ended is None or found_at < presence.ended:
        return False
    last_acts = (life.ended for life in presence.lives if life.instance != run.instance)
    return run.instance is None or run.finished_at not in last_acts


def _is_lost(run: Ran, presence: Presence) -> bool:
    """Return whether nobody calls a run any more, found interrupted or not yet."""
    # A run that no worker had taken up is released by the stop that finds it.
    is_let_go = run.instance is None and presence.is_orderly
    return is_let_go or presence.has_lost(run.instance)
