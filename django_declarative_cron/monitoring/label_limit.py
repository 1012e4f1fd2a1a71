"""Limit the cardinality of the label ``task``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ..signals import log_line
from .metric_defs import OTHER


class TaskLabels:
    """Give the first tasks a label each, and all others one label together.

    Args:
        limit: the number of tasks that have their own label.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._labels: set[str] = set()
        self._hooks: list[Callable[[str], None]] = []
        self._has_warned = False

    @property
    def used(self) -> Collection[str]:
        """Return the tasks that have their own label."""
        return frozenset(self._labels)

    def on_release(self, hook: Callable[[str], None]) -> None:
        """Call a function with each label that is released."""
        self._hooks.append(hook)

    def release(self, names: Iterable[str]) -> None:
        """Let other tasks use the labels of removed tasks."""
        for name in self._labels.intersection(names):
            self._labels.discard(name)
            for hook in self._hooks:
                hook(name)

    def label(self, name: str) -> str:
        """Return the label of a task."""
        if name in self._labels:
            return name
        if len(self._labels) < self._limit:
            self._labels.add(name)
            return name
        if not self._has_warned:
            self._has_warned = True
            log_line("label_limit", limit=self._limit)
        return OTHER
