"""How long a cron expression takes to be understood, and to name its next and previous instant."""

from __future__ import annotations

from ..harness.parts import Figure, Part

PART = Part(
    name="cron",
    title="Cron expressions",
    figures=(
        Figure("parse", "µs"),
        Figure("parse again", "µs"),
        Figure("next, UTC", "µs"),
        Figure("next, New York", "µs"),
        Figure("previous, UTC", "µs"),
        Figure("previous, New York", "µs"),
        Figure("next 29 February", "µs"),
        Figure("next with steps and names", "µs"),
    ),
    contenders=("product", "cronsim", "croniter", "celery", "limit"),
    sizes=(200,),
    size_unit="occurrences in a row",
    rounds=7,
    is_by_processor=True,
    share=0.7,
)
