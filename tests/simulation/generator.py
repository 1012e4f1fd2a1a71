"""Making stories out of seeds: the same seed, the same story, on every machine."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from .steps import Profile, Step, Story

Registration = tuple[Any, ...]

# Zones, each with instants near which its offset changes.
PLACES = (
    ("UTC", ("2024-01-01T10:00", "2024-02-28T22:00", "2023-12-31T22:30")),
    ("Europe/Berlin", ("2024-03-31T01:00", "2024-10-27T01:00")),
    ("America/New_York", ("2024-03-10T07:00", "2024-11-03T06:00")),
    ("America/Santiago", ("2024-04-07T03:00", "2024-09-08T04:00")),
    ("America/Sao_Paulo", ("2018-11-04T03:00", "2018-02-18T02:00")),
    ("Australia/Lord_Howe", ("2024-04-06T15:00", "2024-10-05T15:30")),
    ("Pacific/Apia", ("2011-12-30T10:00",)),
    ("Asia/Kathmandu", ("2024-05-05T18:15",)),
)
BEFORE = (0, 30, 600, 1800, 3600, 3600, 9000, 45_000)
DELAYS = (0, 30, 60, 61, 120, 300, 300, 900, 3600, 86_400)
NAMES = ("a", "b", "c")
DURATIONS = (0, 0, 0, 0, 1, 20, 59, 61, 95, 200, 700, 4000)
FAIL, OK = ("fail",), ("ok",)
PLANS = (OK, OK, FAIL + OK, FAIL * 2 + OK, OK + FAIL, FAIL * 3 + OK, FAIL * 6 + OK)
ADVANCES = (1, 20, 60, 61, 95, 180, 300, 700, 1800, 3600, 7300, 21_600, 90_000)
LEAPS = (61, 200, 3600, 7500, 30_000, 90_000, 260_000, 3_500_000)
STEPS_BACK = (1, 40, 130, 290, 299, 301, 700, 3600, 12_000)
MOST_STARTS = 5
MOST_PASSES = 90
LEASE = 150

Making = Callable[["_Maker"], list[Step]]


def story(profile: Profile, seed: int) -> Story:
    return _Maker(profile, random.Random(f"{profile} {seed}")).story()


class Declaring:
    """Choose a place, a time, and what is declared there."""

    def __init__(self, chance: random.Random, may_be_disabled: bool) -> None:
        self.chance = chance
        self.zone, transitions = chance.choice(PLACES)
        self.transition = datetime.fromisoformat(chance.choice(transitions)).replace(tzinfo=UTC)
        self.start = self.transition - timedelta(seconds=chance.choice(BEFORE))
        self._may_be_disabled = may_be_disabled

    def registration(self, name: str) -> Registration:
        zone = self.zone if self.chance.random() < 0.8 else "UTC"
        keys: dict[str, Any] = {}
        if self.chance.random() < 0.15:
            keys["gap"] = "shift"
        if self.chance.random() < 0.15:
            keys["fold"] = "both"
        if self._may_be_disabled and self.chance.random() < 0.1:
            keys["enabled"] = False
        head = (name, self._cron(zone), self.chance.choice(DELAYS), zone)
        return (*head, keys) if keys else head

    def _cron(self, zone: str) -> str:
        soon = self._local_time_near(zone)
        minute, hour = soon.minute, soon.hour
        weekday = soon.isoweekday() % 7
        return self.chance.choice(
            (
                "* * * * *",
                f"{minute} * * * *",
                f"{minute},{(minute + 20) % 60} * * * *",
                "0,15,30,45 * * * *",
                f"{minute} {hour} * * *",
                f"{minute} {hour},{(hour + 1) % 24} * * *",
                f"{minute} {hour} {soon.day} * {(weekday + 1) % 7}",
                f"0 * {soon.day} * {weekday}",
                f"{minute} {hour} {soon.day} * *",
                f"* {hour} * * *",
            )
        )

    def _local_time_near(self, zone: str) -> datetime:
        """Return a local time that comes soon, or one that is lost or comes twice."""
        if self.chance.random() < 0.5:
            ahead = timedelta(seconds=self.chance.choice((0, 60, 600, 3600, 4000, 7200, 20_000)))
            return (self.start + ahead).astimezone(ZoneInfo(zone))
        last = (self.transition - timedelta(minutes=1)).astimezone(ZoneInfo(zone))
        return last + timedelta(minutes=self.chance.choice((-50, -25, 0, 1, 6, 31)))


def switched(registration: Registration) -> Registration:
    """Declare the same task, enabled where it was disabled and the other way round."""
    *head, keys = registration if len(registration) == 5 else (*registration, {})
    return (*head, {**keys, "enabled": not keys.get("enabled", True)})


def period_of(cron: str) -> float:
    minute, hour, *_ = cron.split()
    in_an_hour = 60 if minute == "*" else minute.count(",") + 1
    in_a_day = in_an_hour * (24 if hour == "*" else hour.count(",") + 1)
    return 86_400 / in_a_day if hour == "*" else 3600 / in_an_hour


class _Maker:
    def __init__(self, profile: Profile, chance: random.Random) -> None:
        self.profile = profile
        self.chance = chance
        self.instances = chance.choice((1, 1, 1, 2, 2, 3))
        hangs = profile != "theory" and self.instances > 1 and chance.random() < 0.6
        self.lease = LEASE if hangs else None
        self.declaring = Declaring(chance, may_be_disabled=profile == "settings")
        self.registrations: list[Registration] = []
        self.is_up = False

    def story(self) -> Story:
        steps = [*self._change(), *self._plan(), self._everywhere()]
        for _ in range(self.chance.randint(6, 12)):
            steps += self._next()
        start = self.declaring.start.isoformat()
        return Story(self.profile, start, self.instances, self.lease, tuple(steps))

    def _next(self) -> list[Step]:
        if not self.is_up and self.chance.random() < 0.7:
            return self._come_back()
        makings = _THEORY if self.profile == "theory" else _THEORY + _PEOPLE
        if self.lease is not None:
            makings = makings + _HANGING
        if self.profile == "settings":
            makings = makings + _MISTAKEN
        weights = [weight for _, weight in makings]
        making = self.chance.choices([making for making, _ in makings], weights)[0]
        return making(self)

    # --- time ---

    def _advance(self) -> list[Step]:
        return [("advance", self.chance.choice(self._affordable()))]

    def _affordable(self) -> list[int]:
        """Return the times that can pass without too many starts or passes."""
        pace = (LEASE // 3 if self.lease else 600) if self.instances > 1 else 3600
        periods = [period_of(cron) for _, cron, *_ in self.registrations] or [86_400]
        longest = min(MOST_PASSES * pace, MOST_STARTS / sum(1 / period for period in periods))
        return [seconds for seconds in ADVANCES if seconds <= max(longest, 61)]

    def _leap(self) -> list[Step]:
        return [("jump", self.chance.choice(LEAPS))]

    def _step_back(self) -> list[Step]:
        return [("jump", -self.chance.choice(STEPS_BACK))]

    # --- sets ---

    def _change(self) -> list[Step]:
        """Change the set that is declared; nothing is told of it yet."""
        known = {each[0]: each for each in self.registrations}
        name = self.chance.choice(NAMES)
        what = self.chance.random()
        if name in known and what < 0.25:
            del known[name]
        elif name in known and what < 0.5:
            _, cron, _, *rest = known[name]
            known[name] = (name, cron, self.chance.choice(DELAYS), *rest)
        elif name in known and what < 0.65 and self.profile == "settings":
            known[name] = switched(known[name])
        else:
            known[name] = self.declaring.registration(name)
        if not self.registrations:
            other = self.chance.choice(NAMES)
            known.setdefault(other, self.declaring.registration(other))
        self.registrations = list(known.values())
        return []

    def _everywhere(self) -> Step:
        self.is_up = True
        return ("deploy", tuple(self.registrations))

    def _redeploy(self) -> list[Step]:
        """Initialise: the same set, or another; everywhere, or in one instance."""
        if self.chance.random() < 0.75:
            self._change()
        if self.chance.random() < 0.5:
            return [self._everywhere()]
        return [("init", self._instance(), tuple(self.registrations))]

    def _mistake(self) -> list[Step]:
        return [("mistake", self._instance(), tuple(self.registrations))]

    def _come_back(self) -> list[Step]:
        pause: list[Step] = []
        if self.chance.random() < 0.6:
            pause = self.chance.choice((self._leap, lambda: [("advance", 61)]))()
        if self.chance.random() < 0.2:
            self._change()
        return [*pause, self._everywhere()]

    # --- runs ---

    def _plan(self) -> list[Step]:
        return [step for name in NAMES for step in self._plan_of(name)]

    def _replan(self) -> list[Step]:
        return self._plan_of(self._name())

    def _plan_of(self, name: str) -> list[Step]:
        outcomes = self.chance.choice(PLANS)
        is_slow = self.chance.random() < 0.3
        durations = (self._long(name),) if is_slow else DURATIONS
        return [("job", name, tuple((each, self.chance.choice(durations)) for each in outcomes))]

    def _long(self, name: str) -> int:
        """Return a duration in which a task is due again, or its retry would be."""
        crons = [cron for other, cron, *_ in self.registrations if other == name]
        period = min(map(period_of, crons), default=60)
        return int(period * self.chance.choice((0.9, 1.1, 2.4))) if period <= 3600 else 700

    # --- what comes together seldom by itself ---

    def _trouble(self) -> list[Step]:
        """Let something happen while a retry is pending."""
        name = self._name()
        plan = tuple(("fail", self.chance.choice((0, 1, 61))) for _ in range(3))
        steps: list[Step] = [("job", name, (*plan, ("ok", 0))), self._until_due(name)]
        return [*steps, *self._event(name), *self._advance()]

    def _cut_short(self) -> list[Step]:
        """Let something happen while a run is in flight."""
        name = self._name()
        plan = (("ok", self.chance.choice((self._long(name), 700, 4000))), ("ok", 0))
        steps: list[Step] = [("job", name, plan), self._until_due(name)]
        if self.chance.random() < 0.4:
            steps += self._event(name)
        return [*steps, *self._event(name), *self._advance()]

    def _within_the_minute(self) -> list[Step]:
        """Let a task come again, or as another, in the minute in which it was done."""
        name = self._name()
        steps: list[Step] = [("job", name, (("ok", 0),)), self._until_due(name)]
        return [*steps, *self._redeploy_other(name), self._everywhere(), *self._advance()]

    def _until_due(self, name: str) -> Step:
        crons = [cron for other, cron, *_ in self.registrations if other == name]
        period = int(min(map(period_of, crons), default=60))
        return ("jump", period + self.chance.choice((0, 1, 20)))

    def _event(self, name: str) -> list[Step]:
        events: list[Callable[[], list[Step]]] = [
            lambda: self._redeploy_other(name),
            lambda: self._redeploy_other(name),
            self._crash,
            self._stop,
        ]
        if self.profile != "theory":
            events += [self._pause, self._clear]
        if self.lease is not None:
            events += [self._hang] * 4
        return self.chance.choice(events)()

    def _redeploy_other(self, name: str) -> list[Step]:
        """Initialise a set in which a task has another schedule, another delay or no place."""
        known = {each[0]: each for each in self.registrations}
        if self.chance.random() < 0.3:
            known.pop(name, None)
        elif self.chance.random() < 0.5 and name in known:
            _, cron, delay, *rest = known[name]
            known[name] = (name, cron, delay + 7, *rest)
        else:
            known[name] = self.declaring.registration(name)
        self.registrations = list(known.values())
        return [self._everywhere()]

    # --- ends, faults, people ---

    def _instance(self) -> int:
        return self.chance.randrange(self.instances)

    def _stop(self) -> list[Step]:
        self.is_up = self.instances > 1 and self.is_up
        return [("stop", self._instance())]

    def _crash(self) -> list[Step]:
        self.is_up = self.instances > 1 and self.is_up
        return [("crash", self._instance())]

    def _crash_at(self) -> list[Step]:
        self.is_up = self.instances > 1 and self.is_up
        return [("crash at", *self._statement()), *self._something()]

    def _refuse(self) -> list[Step]:
        times = self.chance.choice((1, 1, 1, 2, 5, 15))
        return [("refuse", *self._statement(), times), *self._something()]

    def _statement(self) -> tuple[int, str]:
        """Return the number of a statement; the first ones are those of a start and its end."""
        if self.chance.random() < 0.5:
            return self.chance.randint(1, 7), "writes"
        return self.chance.randint(1, 18 if self.chance.random() < 0.7 else 45), "all"

    def _something(self) -> list[Step]:
        """Let time pass, so that a fault meets somebody at work; or meet an initialisation."""
        due = [self._until_due(self._name())]
        return self.chance.choice((self._advance, lambda: due, lambda: due, self._redeploy))()

    def _hang(self) -> list[Step]:
        # The one that initialised first leads, as long as nothing happens to it.
        instance = self.chance.choice((0, 0, self._instance()))
        steps: list[Step] = [("hang", instance), ("advance", self.chance.choice((61, 500, 500)))]
        if self.chance.random() < 0.6:
            steps += [("recover", instance), *self._advance()]
        return steps

    def _recover(self) -> list[Step]:
        return [("recover", self._instance())]

    def _name(self) -> str:
        return self.chance.choice([name for name, *_ in self.registrations] or list(NAMES))

    def _pause(self) -> list[Step]:
        name, seconds = self._name(), self.chance.choice((None, None, 60, 300, 5000))
        steps: list[Step] = [("pause", name, seconds), *self._advance()]
        if self.chance.random() < 0.5:
            steps += [*self._something(), ("resume", name), *self._advance()]
        return steps

    def _resume(self) -> list[Step]:
        return [("resume", self._name()), *self._advance()]

    def _run(self) -> list[Step]:
        return [("run", self._name()), *self._advance()]

    def _clear(self) -> list[Step]:
        return [("clear", self._name()), *self._advance()]


_THEORY: tuple[tuple[Making, float], ...] = (
    (_Maker._advance, 8),
    (_Maker._leap, 2),
    (_Maker._redeploy, 3),
    (_Maker._replan, 1.5),
    (_Maker._trouble, 1.5),
    (_Maker._cut_short, 1.5),
    (_Maker._within_the_minute, 1),
    (_Maker._stop, 1.5),
    (_Maker._crash, 1.5),
    (_Maker._crash_at, 2),
    (_Maker._refuse, 1.5),
)
_PEOPLE: tuple[tuple[Making, float], ...] = (
    (_Maker._pause, 1.5),
    (_Maker._resume, 1.5),
    (_Maker._run, 1.5),
    (_Maker._clear, 1),
    (_Maker._step_back, 1.5),
)
_MISTAKEN: tuple[tuple[Making, float], ...] = ((_Maker._mistake, 1),)
_HANGING: tuple[tuple[Making, float], ...] = ((_Maker._hang, 2.5), (_Maker._recover, 2))
