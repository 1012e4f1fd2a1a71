"""How a fault is planted into the engine, to see that somebody objects.

Each is a function that takes a ``pytest.MonkeyPatch`` and makes one mistake that an engine
could make. None of them touches what the judge and the invariants read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from django_declarative_cron.core import events, state
from django_declarative_cron.core.state import TaskState

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Planted:
    """A planted fault.

    Args:
        plant: makes the mistake.
        rules: what is to object; each of these did in some story, one of them has to.
    """

    plant: Plant
    rules: frozenset[str]


FAULTS: dict[str, Planted] = {}


def fault(*rules: str) -> Callable[[Plant], Plant]:
    """Keep a function as a fault, by its name in words."""

    def keep(plant: Plant) -> Plant:
        name = plant.__name__.strip("_").replace("_", " ")
        FAULTS[name] = Planted(plant, frozenset(rules))
        return plant

    return keep


def around(patch: pytest.MonkeyPatch, owner: object, name: str, made: Callable[..., Any]) -> None:
    """Put a function around another, which it gets as its first argument."""
    real = getattr(owner, name)
    patch.setattr(owner, name, lambda *args, **kwargs: made(real, *args, **kwargs))


def after(
    patch: pytest.MonkeyPatch,
    kinds: type[events.Event] | tuple[type[events.Event], ...],
    change: Callable[[Any, TaskState, TaskState], TaskState],
) -> None:
    """Change what events do to the state: event, state before, state after."""

    def apply(real: Any, event: events.Event, state: TaskState) -> TaskState:
        made: TaskState = real(event, state)
        return change(event, state, made) if isinstance(event, kinds) else made

    around(patch, state, "apply", apply)
