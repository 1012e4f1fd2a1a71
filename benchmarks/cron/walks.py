"""What everybody is asked in this part, and how the answers are judged.

A walk asks for one occurrence after the other, as a scheduler does, so that whoever keeps an
iterator may use it. What counts is the processor's time: nobody waits for anything, and others
may use the machine as well. An answer is right where the oracle of the same walk has it, too.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from ..harness.parts import Sample
from . import oracle

START = datetime(2026, 1, 1, tzinfo=UTC)
END = datetime(2046, 1, 1, tzinfo=UTC)
NEW_YORK = ZoneInfo("America/New_York")
UTC_ZONE = ZoneInfo("UTC")
EXPRESSIONS = (
    "* * * * *",
    "0,15,30,45 * * * *",
    "0 7 * * 1-5",
    "30 4 1,15 * *",
    "5 2 * * 0",
    "0 12 10-20 3,9 1",
)
STEPS = ("*/15 9-17 * * MON-FRI", "*/20 */6 1-7 JAN,JUL *")
TEXTS = 300


@dataclass(frozen=True)
class Walk:
    """So many occurrences in a row.

    Args:
        figure: what is measured by it.
        texts: the expressions; each is walked.
        zone: of their local times.
        backward: from the end instead of from the start.
        steps: the most occurrences of each.
        written_out: the same for the oracle, which knows lists and ranges of numbers only.
    """

    figure: str
    texts: Sequence[str]
    zone: ZoneInfo
    backward: bool = False
    steps: int = 1_000_000
    written_out: Sequence[str] = ()


WALKS = (
    Walk("next, UTC", EXPRESSIONS, UTC_ZONE),
    Walk("next, New York", EXPRESSIONS, NEW_YORK),
    Walk("previous, UTC", EXPRESSIONS, UTC_ZONE, backward=True),
    Walk("previous, New York", EXPRESSIONS, NEW_YORK, backward=True),
    Walk("next 29 February", tuple(f"{n} 6 29 2 *" for n in range(20)), UTC_ZONE, steps=5),
    Walk(
        "next with steps and names",
        STEPS,
        UTC_ZONE,
        written_out=("0,15,30,45 9-17 * * 1-5", "0,20,40 0,6,12,18 1-7 1,7 *"),
    ),
)

Step = Callable[[], datetime]


class Walker(ABC):
    """A contender of this part; the least it has to say is how to parse and how to step."""

    caches = False
    judged = True
    goes_back = True

    def __init__(self) -> None:
        self._number = 0

    @abstractmethod
    def parse(self, text: str) -> object:
        """Understand an expression.

        Args:
            text: with numbers, lists and ranges only.
        """

    @abstractmethod
    def steps(self, text: str, at: datetime, zone: ZoneInfo, *, backward: bool) -> Step:
        """Give what gives the next occurrence, each time it is called, in whatever zone.

        Args:
            text: the expression.
            at: where to begin.
            zone: of its local times.
            backward: towards the past.
        """

    def prepare(self, size: int) -> None:
        """Take the number of occurrences in a row.

        Args:
            size: that number.
        """
        self._size = size

    def measure(self) -> Iterator[Sample]:
        """Parse, and take every walk once."""
        texts = [self._text(self._number + n) for n in range(TEXTS)]
        self._number += TEXTS
        yield Sample("parse", self._parse_all(texts))
        if self.caches:
            yield Sample("parse again", self._parse_all(texts))
        for walk in WALKS:
            if self.goes_back or not walk.backward:
                yield self._take(walk)

    def close(self) -> None:  # noqa: B027 - not everybody holds something
        """Leave."""

    def _parse_all(self, texts: Sequence[str]) -> float:
        began = time.process_time()
        for text in texts:
            self.parse(text)
        return (time.process_time() - began) / len(texts) * 1e6

    def _text(self, number: int) -> str:
        """Give an expression that was not asked for before."""
        number %= 60 * 24 * 28 * 12
        minute, hour, day = number % 60, number // 60 % 24, number // 1440 % 28 + 1
        return f"{minute} {hour} {day} {number // 40_320 + 1} 1-5"

    def _take(self, walk: Walk) -> Sample:
        steps, right, took = min(walk.steps, self._size), 0, 0.0
        for text, asked in zip(walk.texts, walk.written_out or walk.texts, strict=True):
            at = END if walk.backward else START
            step = self.steps(text, at, walk.zone, backward=walk.backward)
            began = time.process_time()
            answers = [step() for _ in range(steps)]
            took += time.process_time() - began
            if self.judged:
                given = {each.astimezone(UTC) for each in answers}
                right += len(_expected(asked, walk.zone, walk.backward, steps) & given)
        done = steps * len(walk.texts)
        each = took / done * 1e6
        return Sample(walk.figure, each, right, done) if self.judged else Sample(walk.figure, each)


@lru_cache(maxsize=64)
def _expected(text: str, zone: ZoneInfo, backward: bool, steps: int) -> frozenset[datetime]:
    return frozenset(oracle.walk(text, zone, END if backward else START, steps, backward=backward))


def minute_before(instant: datetime) -> datetime:
    """Give an instant a minute earlier.

    Args:
        instant: any.
    """
    return instant - timedelta(minutes=1)
