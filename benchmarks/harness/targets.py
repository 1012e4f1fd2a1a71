"""What was to be reached, and what was: the table at the head of ``docs/speed.md``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .contenders import CONTENDERS
from .tables import NOTHING, number
from .values import Kept, Value


@dataclass(frozen=True)
class Target:
    """A number that a figure is not to exceed, or is to reach.

    Args:
        what: in words.
        value: the figure.
        bound: the number.
        unit: of both.
        is_least: the figure is to be as great at least.
        over: divide by this one: what counts is the ratio.
        minus: subtract this one.
    """

    what: str
    value: Value
    bound: float
    unit: str
    is_least: bool = False
    over: Value | None = None
    minus: Value | None = None

    def measured(self, found: Kept) -> float | None:
        """Give what was measured, ``None`` where something of it was not.

        Args:
            found: all results.
        """
        got, over, minus = (
            each.number(found) if each else None for each in (self.value, self.over, self.minus)
        )
        if got is None or (self.over and not over) or (self.minus and minus is None):
            return None
        return got / (over or 1.0) - (minus or 0.0)

    def is_reached(self, found: Kept) -> bool | None:
        """Tell whether it is reached and everything was done right; ``None`` where unknown.

        Args:
            found: all results.
        """
        got, whole = self.measured(found), self.value.summary(found)
        if got is None or whole is None:
            return None
        return (got >= self.bound if self.is_least else got <= self.bound) and (
            whole.right == whole.of
        )


def _cron() -> Iterator[Target]:
    for figure, most in (
        ("parse", 15),
        ("next, UTC", 5),
        ("previous, UTC", 5),
        ("next, New York", 7),
        ("previous, New York", 7),
        ("next 29 February", 25),
    ):
        yield Target(f"cron: {figure}", Value("cron", figure), most, "µs")
    for peer in ("cronsim", "celery"):
        for figure in ("next, UTC", "next, New York", "next 29 February"):
            value = Value("cron", figure)
            over = replace(value, contender=peer)
            yield Target(
                f"cron: {figure}, beside {CONTENDERS[peer].label}", value, 0.3, "×", over=over
            )
    ojs, posix = Value("cron", "next, OJS dialect"), Value("cron", "next, UTC")
    yield Target("cron: the OJS dialect, beside POSIX", ojs, 1.5, "×", over=posix)


def _startup() -> Iterator[Target]:
    for size, unchanged, first in ((1000, 15, 100), (10_000, 60, 1000), (100_000, 600, 10_000)):
        restart = Value("startup", "restart, unchanged", size)
        among = f"{size:,} tasks"
        yield Target(f"restart, unchanged, {among}", restart, unchanged, "ms")
        limit = replace(restart, contender="limit")
        yield Target(f"restart, unchanged, {among}, beside the limit", restart, 5, "×", over=limit)
        queries = replace(restart, of="statements")
        yield Target(f"restart, unchanged, {among}", queries, 3, "statements")
        register = Value("startup", "first registration", size)
        yield Target(f"first registration, {among}", register, first, "ms")
    written = Value("startup", "rows written for it", 100_000)
    yield Target("one task changed of 100,000", written, 1, "rows written")
    for figure, most, unit in (
        ("registration", 120, "s"),
        ("restart", 8, "s"),
        ("idle", 1, "ms"),
        ("memory", 1200, "MB"),
    ):
        yield Target(f"one million tasks: {figure}", Value("million", figure), most, unit)


def _tick() -> Iterator[Target]:
    for size in (1000, 10_000, 100_000):
        idle = Value("tick", "idle", size)
        yield Target(f"idle pass, {size:,} tasks", idle, 1, "ms")
        yield Target(f"idle pass, {size:,} tasks", replace(idle, of="statements"), 1, "statements")
    few, many = (Value("tick", "idle", size) for size in (1000, 100_000))
    yield Target("idle pass, 100,000 tasks beside 1,000", many, 1.5, "×", over=few)
    for due, most in ((10, 8), (1000, 200), (10_000, 2000)):
        whole = Value("tick", f"{due:,} due, in all", 100_000)
        yield Target(f"{due:,} due of 100,000, started and recorded", whole, most, "ms")
    sent = Value("tick", "1,000 due, in all", 100_000, of="statements")
    yield Target("1,000 due of 100,000, started and recorded", sent, 10, "statements")


def _lateness() -> Iterator[Target]:
    for part, words in (
        ("lateness", "start after the minute"),
        ("writing", "the same while writing"),
    ):
        for size in (1000, 100_000):
            among = f"{words}, {size:,} tasks"
            yield Target(f"{among}: median", Value(part, "median", size), 2, "ms")
            yield Target(f"{among}: worst", Value(part, "worst", size, of="high"), 25, "ms")
    yield Target(
        "an act each second, 99 of 100 starts", Value("edits", "99 of 100 before"), 100, "ms"
    )
    yield Target(
        "1,000,000 runs forgotten: worst start, beyond the usual",
        Value("pruning", "worst", of="high"),
        50,
        "ms",
        minus=Value("lateness", "worst", 1000, of="high"),
    )


def _running() -> Iterator[Target]:
    runs = Value("throughput", "recorded runs")
    yield Target("recorded runs, PostgreSQL", runs, 2500, "per second", is_least=True)
    for peer in ("procrastinate", "tasks_db", "q2"):
        over = replace(runs, contender=peer)
        yield Target(
            f"the same, beside {CONTENDERS[peer].label}", runs, 1, "×", is_least=True, over=over
        )
    sqlite = replace(runs, contender="product_sqlite")
    yield Target("recorded runs, SQLite", sqlite, 2790, "per second", is_least=True)
    huey = replace(runs, contender="huey")
    yield Target("the same, beside huey", sqlite, 1, "×", is_least=True, over=huey)
    process = Value("runners", "runs, ten at a time", contender="process")
    yield Target("runs in processes", process, 100, "per second", is_least=True)


def _idling() -> Iterator[Target]:
    for size, most in ((1000, 70), (10_000, 80), (100_000, 150)):
        yield Target(f"memory, {size:,} tasks", Value("memory", "memory", size), most, "MB")
    yield Target("waiting, 100,000 tasks", Value("memory", "one core", 100_000), 0.5, "% of a core")
    yield Target(
        "waiting, 100,000 tasks", Value("memory", "transactions", 100_000), 2, "queries per second"
    )
    yield Target("memory gained by 200,000 runs", Value("growth", "growth"), 20, "MB")


def _pages() -> Iterator[Target]:
    for figure in ("tasks", "one task", "runs", "one run", "month"):
        page = Value("pages", figure, 10_000)
        yield Target(f"page of 10,000 tasks, 1,000,000 runs: {figure}", page, 300, "ms")
        sent = replace(page, of="statements")
        yield Target(f"page of 10,000 tasks, 1,000,000 runs: {figure}", sent, 12, "statements")


TARGETS = (
    *(*_cron(), *_startup(), *_tick(), *_lateness()),
    *(*_running(), *_idling(), *_pages()),
)


def markdown(found: Kept) -> str:
    """Give the table of all targets, and how many are reached.

    Args:
        found: all results.
    """
    states = [each.is_reached(found) for each in TARGETS]
    lines = [
        f"{states.count(True)} of {len(TARGETS)} are reached, {states.count(False)} are not"
        f"{_unknown(states.count(None))}.",
        "",
        "| what | asked | measured | reached |",
        "| --- | --- | --- | --- |",
        *(_line(each, found) for each in TARGETS),
    ]
    return "\n".join(lines)


def _unknown(count: int) -> str:
    return f", {count} were not measured" if count else ""


def _line(target: Target, found: Kept) -> str:
    got = target.measured(found)
    asked = f"{'≥' if target.is_least else '≤'} {target.bound:,g} {target.unit}"
    measured = NOTHING if got is None else f"{number(got)} {target.unit}"
    words = {None: NOTHING, True: "yes", False: "**no**"}[target.is_reached(found)]
    return f"| {target.what} | {asked} | {measured} | {words} |"
