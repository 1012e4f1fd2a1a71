"""How late runs begin while an operator acts every second."""

from __future__ import annotations

from ..harness.parts import Figure, Part

PART = Part(
    name="edits",
    title="Lateness with an edit a second",
    figures=(
        Figure("median", "ms"),
        Figure("99 of 100 before", "ms"),
        Figure("worst", "ms"),
        Figure("acts", "in all"),
    ),
    contenders=("product", "apscheduler", "celery"),
    sizes=(10_000,),
    rounds=2,
    share=7.5,
    patience=600,
    remarks=(
        "declarative-cron: 100 tasks due in each of five minutes, with an act each second; the"
        " others: 10 tasks in one minute.",
    ),
)
