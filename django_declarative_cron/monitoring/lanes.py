"""A few couriers beside one another, so that a slow receiver holds up what is its own.

What tells of one thing stays in its order: while something of it waits or is being sent, what
comes next goes the same way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from .delivery import Courier

MOST = 8
"""How many there are at most; each is a thread, from the first time that it is needed."""


class Lanes:
    """Send each thing by the courier that holds others of the same, or has the least to do.

    Args:
        make: makes a courier.
    """

    def __init__(self, make: Callable[[], Courier]) -> None:
        self._make = make
        self._choosing = threading.Lock()
        self.couriers: list[Courier] = []

    def send(self, attempt: Callable[[], None], whose: str) -> None:
        """Queue something; never block, never raise."""
        with self._choosing:
            self._courier(whose).send(attempt, whose)

    def _courier(self, whose: str) -> Courier:
        for courier in self.couriers:
            if courier.holds(whose):
                return courier
        idlest = min(self.couriers, key=lambda courier: courier.waiting, default=None)
        if idlest is None or (idlest.waiting and len(self.couriers) < MOST):
            idlest = self._make()
            self.couriers.append(idlest)
        return idlest
