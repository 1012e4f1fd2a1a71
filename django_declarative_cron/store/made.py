"""Instances of models, made of values that need no check.

Django asks every field of an instance it makes; that takes it longer than the database takes
for the row. Signals of ``__init__`` are not sent, and nobody is to hear them for rows that are
only on their way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from django.db import models
from django.db.models.base import ModelState

M = TypeVar("M", bound=models.Model)


def made(model: type[M], values: Mapping[str, Any], using: str | None = None) -> M:
    """Make an instance.

    Args:
        model: its model.
        values: of its attributes, as the model keeps them; what is missing is deferred.
        using: alias of the database it was read from, ``None`` for a new one.
    """
    instance = model.__new__(model)
    state = ModelState()
    state.db, state.adding = using, using is None
    vars(instance).update(values, _state=state)
    return instance
