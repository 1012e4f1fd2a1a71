"""What befalls the schedulers and their database, by chance and at once."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable

from django.db import Error as DatabaseError
from django.db import connection

from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act

from .clocks import Clock
from .fleet import Fleet, Ship
from .place import Place
from .plan import Plan
from .watch import Watch

_STEP = 0.05

Kind = tuple[Callable[[], None], int]


class Storm:
    """One storm over one fleet.

    Args:
        plan: how long, how hard.
        fleet: the processes.
        place: their database.
        watch: looks who leads.
        clock: of the machine.
    """

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
                self._befall()
                event = time.monotonic() + self._chance.expovariate(1 / self._plan.gap)
            time.sleep(_STEP)
        self._over.set()
        for thread in threads:
            thread.join()

    def _befall(self) -> None:
        kinds = self._clocks() if self._plan.weather == "clocks" else self._all()
        what, weights = zip(*kinds, strict=True)
        self._chance.choices(what, weights)[0]()

    def _clocks(self) -> list[Kind]:
        return [
            (self._stop_for_any_time, 45),
            (self._pause_for_any_time, 15),
            (self._step_the_clock, 30),
            (self._kill, 5),
            (self._ask_to_end, 5),
        ]

    def _all(self) -> list[Kind]:
        kinds: list[Kind] = [
            (self._kill, 40),
            (self._lose, 10),
            (self._ask_to_end, 20),
            (self._stop_for_a_moment, 8),
            (self._stop_for_long, 5),
            (self._pause_for_long, 2),
        ]
        if self._place.can_fail:
            kinds += [(self._terminate, 11), (self._restart, 4)]
        return kinds

    # --- to processes ---

    def _kill(self) -> None:
        ship = self._any()
        if ship is not None:
            self._vacate("kill", ship, ship.kill)
            self.counts["kill -9"] += 1

    def _lose(self) -> None:
        ship = self._any()
        if ship is not None:
            self._vacate("loss", ship, ship.lose)
            self.counts["kill -9 with the watchdog process"] += 1

    def _ask_to_end(self) -> None:
        ship = self._any()
        if ship is not None:
            self._vacate("stop", ship, ship.ask)
            self.counts["SIGTERM"] += 1

    def _stop_for_a_moment(self) -> None:
        self._stop(self._chance.uniform(0.1, 0.6), "SIGSTOP within the lease")

    def _stop_for_long(self) -> None:
        self._stop(self._chance.uniform(1.2, 2), "SIGSTOP beyond the lease")

    def _pause_for_long(self) -> None:
        self._stop(self._chance.uniform(1.2, 2), "container paused beyond the lease", whole=True)

    def _stop_for_any_time(self) -> None:
        self._stop(self._chance.uniform(0.02, 3), "SIGSTOP of any length")

    def _pause_for_any_time(self) -> None:
        self._stop(self._chance.uniform(0.02, 3), "container paused for any time", whole=True)

    def _stop(self, leases: float, kind: str, *, whole: bool = False) -> None:
        ship = self._any()
        if ship is not None:
            at = self._vacate("pause", ship, lambda: ship.freeze(whole=whole))
            self._stopped.append((at + leases * self._plan.lease, at, ship))
            self.counts[kind] += 1

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
                self._watch.disturb()

    def _vacate(self, kind: str, ship: Ship, act: Callable[[], float]) -> float:
        others = [each for each in self._fleet.awake() if each is not ship and each.is_up]
        at = act()
        self._watch.vacate(kind, ship.pid, at, alone=not others)
        return at

    def _any(self) -> Ship | None:
        """Choose a process; every second time the one that leads, seldom one that begins."""
        awake = self._fleet.awake()
        if self._chance.random() < 0.9:
            awake = [ship for ship in awake if ship.is_up]
        leading = [ship for ship in awake if ship.pid == self._watch.leader]
        if leading and self._chance.random() < 0.5:
            return leading[0]
        return self._chance.choice(awake) if awake else None

    # --- to the clock ---

    def _step_the_clock(self) -> None:
        seconds = self._clock.step(self._chance)
        self.steps.append(seconds)
        self.counts["clock set forward" if seconds > 0 else "clock set back"] += 1

    # --- to the database ---

    def _terminate(self) -> None:
        self._watch.disturb()
        self.counts["backends terminated"] += self._place.terminate(self._chance.uniform(0.3, 1))

    def _restart(self) -> None:
        self._watch.disturb()
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
