"""What is still to be told, in the order of time; pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from enum import IntEnum
from itertools import count
from typing import Any, NamedTuple

Record = dict[str, Any]
Telling = Callable[[datetime], Iterable[Record]]


class Rank(IntEnum):
    """What comes first of one instant."""

    END = 0
    PRESENCE = 1
    ACT = 2
    RETURN = 3


class Step(IntEnum):
    """The steps of one presence, in their order."""

    BEGAN = 0
    ASKED = 1
    ENDED = 2


class Item(NamedTuple):
    """Something that is to be told at an instant."""

    at: datetime
    rank: Rank
    presence: int
    step: Step
    order: int
    telling: Telling


class Agenda:
    """Items, the earliest first."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._order = count()

    def add(
        self,
        at: datetime,
        rank: Rank,
        telling: Telling,
        presence: int = -1,
        step: Step = Step.BEGAN,
    ) -> None:
        """Plan something.

        Args:
            at: when it is to be told.
            rank: its place among what is told at the same instant.
            telling: gives the records.
            presence: number of the presence that it is a step of.
            step: which one.
        """
        heapq.heappush(self._items, Item(at, rank, presence, step, next(self._order), telling))

    def up_to(self, at: datetime, presence: int) -> Iterator[Item]:
        """Give what comes before an event of a presence; more may be added meanwhile.

        Args:
            at: when the event is; of its very instant, ends of runs come before it.
            presence: its number; the event comes after the start of its own presence, and
                before the end of it.
        """
        while self._items and _comes_before(self._items[0], at, presence):
            yield heapq.heappop(self._items)


def _comes_before(item: Item, at: datetime, presence: int) -> bool:
    if item.at != at:
        return item.at < at
    if item.rank is Rank.PRESENCE:
        return (item.presence, item.step) <= (presence, Step.BEGAN)
    return item.rank is Rank.END
