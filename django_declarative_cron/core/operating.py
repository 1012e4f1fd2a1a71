"""What an entry says of how its task is operated, beside when and what it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from .plain import in_short

KEYS: Final = ("spread", "catch_up", "exclude", "pause_after_failures")


@dataclass(frozen=True, slots=True)
class Operating:
    """How a task is operated.

    Args:
        spread: its occurrences are later by less than this, see ``core.spread``.
        catch_up: how late an occurrence may start, ``None`` for any time.
        exclude: names of the calendars whose days have no occurrences.
        pause_after_failures: how many failures in a row pause it, ``None`` for never.
    """

    spread: timedelta = timedelta(0)
    catch_up: timedelta | None = None
    exclude: tuple[str, ...] = ()
    pause_after_failures: int | None = None

    def as_data(self) -> dict[str, Any]:
        """Give it as JSON-native data: what is said only, durations in seconds."""
        said: dict[str, Any] = {
            "spread": self.spread.total_seconds() or None,
            "catch_up": None if self.catch_up is None else self.catch_up.total_seconds(),
            "exclude": list(self.exclude) or None,
            "pause_after_failures": self.pause_after_failures,
        }
        return {key: value for key, value in said.items() if value is not None}


def of_data(data: Mapping[str, Any]) -> Operating:
    """Read what ``as_data`` gave.

    Args:
        data: the declaration of a row; other keys are left alone.

    Raises:
        ValueError: the row is damaged.
        TypeError: likewise.
        OverflowError: likewise.
    """
    catch_up, exclude = data.get("catch_up"), data.get("exclude", ())
    if isinstance(exclude, str) or not all(isinstance(each, str) for each in exclude):
        raise ValueError(f"stored names of calendars are none: {in_short(exclude)}")
    most = data.get("pause_after_failures")
    if most is not None and (not isinstance(most, int) or most < 1):
        raise ValueError(f"stored number of failures is none: {in_short(most)}")
    return Operating(
        spread=timedelta(seconds=data.get("spread", 0)),
        catch_up=None if catch_up is None else timedelta(seconds=catch_up),
        exclude=tuple(exclude),
        pause_after_failures=most,
    )
