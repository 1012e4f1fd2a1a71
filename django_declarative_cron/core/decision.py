"""A state and the events that led to it: what a decision is told in."""

from __future__ import annotations

from dataclasses import dataclass

from .events import TaskEvent
from .state import TaskState, apply


@dataclass(frozen=True, slots=True)
class Story:
    """A state and the events that led to it."""

    state: TaskState
    events: tuple[TaskEvent, ...] = ()

    def then(self, *following: TaskEvent) -> Story:
        """Let events happen."""
        if not following:
            return self
        state = self.state
        for event in following:
            state = apply(event, state)
        return Story(state, self.events + following)
