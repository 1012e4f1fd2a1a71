"""How late runs begin while an operator acts every second."""

from __future__ import annotations

from ..harness.parts import Figure, Part

PART = Part(
    name="edits",
    title="Lateness with an edit a second",
    figures=(Figure("median", "ms"), Figure("worst", "ms")),
    contenders=("product", "apscheduler", "celery"),
    sizes=(10_000,),
    rounds=5,
)
