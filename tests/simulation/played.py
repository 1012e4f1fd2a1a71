"""What came of a story, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Wrong:
    """Something that is wrong.

    Args:
        rule: the axiom or the invariant that is broken.
        text: how, for people.
        step: after which step it was seen; ``None`` where the whole trace was judged.
    """

    rule: str
    text: str
    step: int | None = None

    def __str__(self) -> str:
        where = "" if self.step is None else f" (after step {self.step})"
        return f"{self.rule}{where}: {self.text}"


@dataclass(slots=True)
class Played:
    """What came of a story.

    Args:
        wrong: all that is wrong, empty where nothing is.
        starts: number of callbacks called.
        passed: virtual time from its start to its end.
    """

    wrong: list[Wrong] = field(default_factory=list)
    starts: int = 0
    passed: timedelta = timedelta(0)

    @property
    def rules(self) -> set[str]:
        """Give the names of what is broken."""
        return {each.rule for each in self.wrong}
