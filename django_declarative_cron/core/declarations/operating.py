"""Options for the operation of a task: deterministic jitter, catch-up, calendars, automatic pauses.

``spread`` moves every occurrence of a task by the same offset, so its history, its previews and
its runs all show the instant at which it runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from .values import in_short

SECOND: Final = timedelta(seconds=1)
LONGEST_SPREAD: Final = timedelta(days=1)


def offset_of(name: str, spread: timedelta) -> timedelta:
    """Return the delay of a task's occurrences; it is always the same for one name."""
    seconds = spread // SECOND
    if seconds < 1:
        return timedelta(0)
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % seconds * SECOND


KEYS: Final = ("spread", "catch_up_window", "exclude_calendars", "pause_after_failures")


@dataclass(frozen=True, slots=True)
class Operating:
    """Options for the operation of a task.

    Args:
        spread: its occurrences are delayed by less than this.
        catch_up_window: how late an occurrence may start, ``None`` for any time.
        exclude_calendars: names of the calendars; on their days there are no occurrences.
        pause_after_failures: how many failures in a row pause it, ``None`` for never.
    """

    spread: timedelta = timedelta(0)
    catch_up_window: timedelta | None = None
    exclude_calendars: tuple[str, ...] = ()
    pause_after_failures: int | None = None

    def as_data(self) -> dict[str, Any]:
        """Return the keys that are set as JSON-native data, durations in seconds."""
        said: dict[str, Any] = {
            "spread": self.spread.total_seconds() or None,
            "catch_up_window": None
            if self.catch_up_window is None
            else self.catch_up_window.total_seconds(),
            "exclude_calendars": list(self.exclude_calendars) or None,
            "pause_after_failures": self.pause_after_failures,
        }
        return {key: value for key, value in said.items() if value is not None}


def of_data(data: Mapping[str, Any]) -> Operating:
    """Return the value that ``as_data`` was called on.

    Raises:
        ValueError: the row is damaged.
        TypeError: likewise.
        OverflowError: likewise.
    """
    window, exclude = data.get("catch_up_window"), data.get("exclude_calendars", ())
    if isinstance(exclude, str) or not all(isinstance(each, str) for each in exclude):
        raise ValueError(f"stored names of calendars are none: {in_short(exclude)}")
    most = data.get("pause_after_failures")
    if most is not None and (not isinstance(most, int) or most < 1):
        raise ValueError(f"stored number of failures is none: {in_short(most)}")
    return Operating(
        spread=timedelta(seconds=data.get("spread", 0)),
        catch_up_window=None if window is None else timedelta(seconds=window),
        exclude_calendars=tuple(exclude),
        pause_after_failures=most,
    )
