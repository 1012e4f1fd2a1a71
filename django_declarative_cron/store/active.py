"""Runs that are active, and those that are over, found by index however old statistics are.

Active is who holds a slot. Where PostgreSQL has not counted a table yet, a column that is not
null is no condition to it, and one that is null is a rare one: it reads a whole history for
the first, by the index of the slots, and for the second in the place of a better index.
"""

from __future__ import annotations

from typing import Final

from django.db.models import CharField, Q, Value
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact

ACTIVE: Final = Q(running_slot__gte="")
"""Holds a slot: of a deployment, found by the index of the slots, in which nobody else is."""


def is_over() -> Q:
    """Ask whether a run holds no slot, where something else is to find it."""
    slot = Coalesce("running_slot", Value(""), output_field=CharField())
    return Q(Exact(slot, ""))
