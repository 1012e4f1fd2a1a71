"""What befalls the schedulers and their database, by chance and at once, and who leads then."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from django.db import Error as DatabaseError
from django.db import connection

from django_declarative_cron.models import SchedulerState
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act

from .clocks import Clock
from .fleet import Fleet, Ship
from .place import Place
from .plan import Plan

_STEP = 0.05

Kind = tuple[Callable[[], None], int]


class Watch:
    """Look who leads, in a thread of its own."""

    def __init__(self) -> None:
        self.leader: int | None = None
        self.terms = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _look_on(self) -> None:
        while not self._ended.wait(_STEP):
            try:
                self._look()
            except DatabaseError:
                connection.close()
        connection.close()

    def _look(self) -> None:
        state = SchedulerState.objects.select_related("leader").first()
        if state is not None:
            self.terms = state.term
            self.leader = None if state.leader is None else state.leader.pid


class Storm:
    """One storm over one fleet, its database and the clock of the machine."""

    def __init__(self, plan: Plan, fleet: Fleet, place: Place, watch: Watch, clock: Clock) -> None:
        self._plan = plan
        self._fleet = fleet
        self._place = place
        self._watch = watch
        self._clock = clock
        self._chance = random.Random(plan.seed)
        self._stopped: list[tuple[float, float, Ship]] = []
        self._over = threading.Event()
        self.counts: Counter[str] = Counter()
        self.away: list[float] = []
        self.steps: list[float] = []

    def blow(self) -> None:
        """Let it all happen, until the time is over and everybody is awake."""
        until = time.monotonic() + self._plan.minutes * 60
        event = time.monotonic()
        # In threads of their own: a process that is stopped with a lock holds them up too.
        threads = [threading.Thread(target=t) for t in (self._wake_in_time, self._ask_in_time)]
        for thread in threads:
            thread.start()
        while (now := time.monotonic()) < until:
            self._fleet.fill()
            if now >= event:
                what, weights = zip(*self._kinds(), strict=True)
                self._chance.choices(what, weights)[0]()
                event = time.monotonic() + self._chance.expovariate(1 / self._plan.gap)
            time.sleep(_STEP)
        self._over.set()
        for thread in threads:
            thread.join()

    def _kinds(self) -> list[Kind]:
        kill = partial(self._end, "kill -9", Ship.kill)
        ask = partial(self._end, "SIGTERM", Ship.ask)
        lose = partial(self._end, "kill -9 with the watchdog process", Ship.lose)
        stop, pause = self._stop, partial(self._stop, whole=True)
        if self._plan.weather == "clocks":
            return [
                (partial(stop, "SIGSTOP of any length", 0.02, 3), 45),
                (partial(pause, "container paused for any time", 0.02, 3), 15),
                (self._step_the_clock, 30),
                (kill, 5),
                (ask, 5),
            ]
        kinds: list[Kind] = [
            (kill, 40),
            (lose, 10),
            (ask, 20),
            (partial(stop, "SIGSTOP within the lease", 0.1, 0.6), 8),
            (partial(stop, "SIGSTOP beyond the lease", 1.2, 2), 5),
            (partial(pause, "container paused beyond the lease", 1.2, 2), 2),
        ]
        if self._place.can_fail:
            kinds += [(self._terminate, 11), (self._restart, 4)]
        return kinds

    # --- to processes ---

    def _end(self, name: str, act: Callable[[Ship], object]) -> None:
        ship = self._any()
        if ship is not None:
            act(ship)
            self.counts[name] += 1

    def _stop(self, name: str, least: float, most: float, *, whole: bool = False) -> None:
        """Stop a process from running for so many leases."""
        leases, ship = self._chance.uniform(least, most), self._any()
        if ship is not None:
            at = ship.freeze(whole=whole)
            self._stopped.append((at + leases * self._plan.lease, at, ship))
            self.counts[name] += 1

    def _wake_in_time(self) -> None:
        while not self._over.wait(_STEP):
            self._wake(time.monotonic())
        self._wake(float("inf"))

    def _wake(self, now: float) -> None:
        for entry in [each for each in self._stopped if each[0] <= now]:
            self._stopped.remove(entry)
            _, since, ship = entry
            if ship.is_alive:
                ship.paused.append((since, ship.wake()))

    def _any(self) -> Ship | None:
        """Choose a process; every second time the one that leads, seldom one that begins."""
        awake = self._fleet.awake()
        if self._chance.random() < 0.9:
            awake = [ship for ship in awake if ship.is_up]
        leading = [ship for ship in awake if ship.pid == self._watch.leader]
        if leading and self._chance.random() < 0.5:
            return leading[0]
        return self._chance.choice(awake) if awake else None

    # --- to the clock and to the database ---

    def _step_the_clock(self) -> None:
        seconds = self._clock.step(self._chance)
        self.steps.append(seconds)
        self.counts["clock set forward" if seconds > 0 else "clock set back"] += 1

    def _terminate(self) -> None:
        self.counts["backends terminated"] += self._place.terminate(self._chance.uniform(0.3, 1))

    def _restart(self) -> None:
        self.away.append(self._place.restart(at_once=self._chance.random() < 0.5))
        self.counts["database restarts"] += 1

    # --- by people ---

    def _ask_in_time(self) -> None:
        chance = random.Random(self._plan.seed)
        while not self._over.wait(1):
            self._ask_for_runs(chance)
        connection.close()

    def _ask_for_runs(self, chance: random.Random) -> None:
        # Always the same few: what people do is not judged by the theory.
        few = range(self._plan.tasks - max(self._plan.tasks // 10, 2), self._plan.tasks)
        numbers = chance.sample(few, 2)
        act = Act(author="an operator", at=self._clock.now())
        try:
            asked = operator_actions.request_run({f"task-{n:03}" for n in numbers}, act)
            self.counts["runs asked for"] += len(asked)
        except DatabaseError:
            connection.close()
