"""What was to be reached, and what was: the table at the head of ``docs/speed.md``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

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


def _startup() -> Iterator[Target]:
    for size, most in ((1000, 35), (10_000, 250), (100_000, 2500)):
        restart = Value("startup", "restart, unchanged", size)
        yield Target(f"restart, unchanged, {size:,} tasks", restart, most, "ms")
        queries = replace(restart, of="statements")
        yield Target(f"restart, unchanged, {size:,} tasks", queries, 6, "statements")


def _tick() -> Iterator[Target]:
    idle = Value("tick", "idle", 1000)
    yield Target("idle pass, 1,000 tasks", idle, 2, "ms")
    yield Target("idle pass, 1,000 tasks", replace(idle, of="statements"), 1, "statements")
    for due, most in ((10, 25), (1000, 500)):
        whole = Value("tick", f"{due:,} due, in all", 1000 if due == 10 else 10_000)
        size = f"{whole.size:,}"
        yield Target(f"{due:,} due of {size}, started and recorded", whole, most, "ms")


def _running() -> Iterator[Target]:
    runs = Value("throughput", "recorded runs")
    yield Target("recorded runs, PostgreSQL", runs, 2000, "per second", is_least=True)
    sqlite = replace(runs, contender="product_sqlite")
    yield Target("recorded runs, SQLite", sqlite, 2000, "per second", is_least=True)


TARGETS = (*_startup(), *_tick(), *_running())


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
