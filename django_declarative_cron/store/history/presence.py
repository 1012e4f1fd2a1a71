"""When a deployment had a scheduler, and when that could not work; pure.

To the theory, which knows one scheduler, the instances of a deployment are one: it is
initialised when the first of them comes, it stops or crashes when the last of them goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

Span = tuple[datetime, datetime]

NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Life:
    """One scheduler instance, from its initialisation to its end. All instants are aware UTC.

    Args:
        instance: its UUID.
        began: when it was initialised.
        ended: when it stopped, or gave its last sign of life; ``None`` while it lives.
        is_orderly: it ended by a stop that was complete.
        asked: when it was asked to stop, if it was.
        lapses: where its clock leapt from and to.
    """

    instance: UUID
    began: datetime
    ended: datetime | None
    is_orderly: bool = False
    asked: datetime | None = None
    lapses: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Presence:
    """A time in which at least one instance lived.

    Args:
        number: from 0, in the order of time.
        began: its start.
        ended: its end, ``None`` where it goes on.
        is_orderly: it ended by a stop.
        asked: from when on every living instance had been asked to stop, ``None`` for never.
        lives: of the instances.
    """

    number: int
    began: datetime
    ended: datetime | None
    is_orderly: bool
    asked: datetime | None
    lives: tuple[Life, ...]

    def has_lost(self, instance: UUID | None) -> bool:
        """Tell whether an instance died in it, found dead or not yet.

        Args:
            instance: its UUID.
        """
        died = (life for life in self.lives if life.ended is not None and not life.is_orderly)
        return any(life.instance == instance for life in died)


def presences(lives: Iterable[Life]) -> list[Presence]:
    """Put lives that overlap together.

    Args:
        lives: in any order.
    """
    groups: list[list[Life]] = []
    until = None
    for life in sorted(lives, key=lambda each: each.began):
        if until is None or life.began >= until:
            groups.append([])
            until = life.began
        groups[-1].append(life)
        until = max(until, life.ended or NEVER)
    return [_presence(number, group) for number, group in enumerate(groups)]


def _presence(number: int, lives: list[Life]) -> Presence:
    last = max(lives, key=lambda each: (each.ended or NEVER, each.is_orderly))
    asked = max(each.asked or each.ended or NEVER for each in lives)
    over = last.ended or NEVER
    # Whoever crashed without having been asked ends all in the same instant.
    is_asked = asked < over or (last.is_orderly and asked == over)
    return Presence(
        *(number, lives[0].began, last.ended, last.is_orderly),
        *(asked if is_asked else None, tuple(lives)),
    )


def frozen(presence: Presence) -> list[Span]:
    """Give the times in which no living instance could start anything, oldest first.

    Its process did not live through them (004 Frozen), or it was asked to stop.

    Args:
        presence: where to look.
    """
    gaps: list[Span] = []
    until = presence.began
    for since, end in sorted(span for life in presence.lives for span in _at_work(life)):
        if since > until:
            gaps.append((until, since))
        until = max(until, end)
    return gaps


def _at_work(life: Life) -> Iterator[Span]:
    since, end = life.began, life.asked or life.ended or NEVER
    for lapsed, resumed in sorted(lapse for lapse in life.lapses if lapse[0] < lapse[1]):
        if since < lapsed:
            yield since, min(lapsed, end)
        since = max(since, resumed)
    if since < end:
        yield since, end


def lived_twice(presence: Presence) -> list[Span]:
    """Give the times that clocks, set back, showed twice.

    Args:
        presence: where to look.
    """
    back = (lapse for life in presence.lives for lapse in life.lapses if lapse[1] < lapse[0])
    return sorted((until, since) for since, until in back)
