"""Asking a run to end before its time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

Why = Literal["timed_out", "cancelled"]


class Ending:
    """What asks a run to end, and tells it so.

    The first one to ask says why. Nobody can ask any more once the callback has ended.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.why: Why | None = None
        self._over = False
        self._hooks: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def ask(self, why: Why) -> bool:
        """Ask the run to end.

        Args:
            why: its outcome then.

        Returns:
            whether it has not ended yet, and nobody had asked before.
        """
        with self._lock:
            if self._over or self.why is not None:
                return False
            self.why = why
            hooks = list(self._hooks)
        self.asked.set()
        for hook in hooks:
            hook()
        return True

    @property
    def is_over(self) -> bool:
        """Tell whether the callback has ended, whether or not its result is there."""
        return self._over

    def on_ask(self, hook: Callable[[], object]) -> None:
        """Call a function when the run is asked to end; at once where it was already.

        Args:
            hook: called in the thread of whoever asks.
        """
        with self._lock:
            self._hooks.append(hook)
            is_late = self.why is not None
        if is_late:
            hook()

    def settle(self) -> Why | None:
        """Take note that the callback has ended.

        Returns:
            why it was asked to, if it was.
        """
        with self._lock:
            self._over = True
            return self.why
