"""Which tasks have a label of their own in metrics, and which are counted together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ..signals import tell_other
from .metric_defs import OTHER


class Names:
    """Labels of tasks: so many of them, and one for all others.

    Args:
        most: how many have a label of their own.
        first: names that come before others.
    """

    def __init__(self, most: int, first: Iterable[str] = ()) -> None:
        self._most = most
        self._known: set[str] = set()
        self._freed: list[Callable[[str], None]] = []
        self._has_told = False
        for name in first:
            self.label(name)

    @property
    def known(self) -> Collection[str]:
        """Return the names that have a label of their own now."""
        return frozenset(self._known)

    def on_freed(self, hook: Callable[[str], None]) -> None:
        """Call a function with each name whose label is freed."""
        self._freed.append(hook)

    def free(self, names: Iterable[str]) -> None:
        """Return the labels of tasks that are gone to others."""
        for name in self._known.intersection(names):
            self._known.discard(name)
            for hook in self._freed:
                hook(name)

    def label(self, name: str) -> str:
        """Return the label of a task."""
        if name in self._known:
            return name
        if len(self._known) < self._most:
            self._known.add(name)
            return name
        if not self._has_told:
            self._has_told = True
            tell_other(self._most)
        return OTHER
