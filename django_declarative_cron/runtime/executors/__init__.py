"""Where callbacks run."""

from __future__ import annotations

from typing import Protocol

from ..work import Work


class Executor(Protocol):
    """Take claimed runs and call ``done`` once for each."""

    def submit(self, work: Work) -> None:
        """Call a callback soon; never block, never lose a run."""

    def close(self) -> None:
        """Give back threads once every run has ended."""
