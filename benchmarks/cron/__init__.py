"""How long a cron expression takes to be understood, and to name its next and previous instant."""

from __future__ import annotations

from ..harness.parts import Figure, Part

PART = Part(
    name="cron",
    title="Cron expressions",
    figures=(
        Figure("next, UTC", "µs", table="Six common expressions"),
        Figure("next, New York", "µs", table="Six common expressions"),
        Figure("previous, UTC", "µs", table="Six common expressions"),
        Figure("previous, New York", "µs", table="Six common expressions"),
        Figure("parse", "µs", table="Parsing, and special ones"),
        Figure("parse again", "µs", table="Parsing, and special ones"),
        Figure("next 29 February", "µs", table="Parsing, and special ones"),
        Figure("next with steps and names", "µs", table="Parsing, and special ones"),
        Figure("next, OJS dialect", "µs", table="Parsing, and special ones"),
    ),
    contenders=("product", "cronsim", "croniter", "celery", "limit"),
    sizes=(200,),
    size_unit="occurrences in a row",
    rounds=7,
    is_by_processor=True,
    share=0.7,
)
