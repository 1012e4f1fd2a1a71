"""What it costs to declare many tasks: the first time, unchanged, and with one of them changed."""

from __future__ import annotations

from ..harness.parts import Figure, Part

PART = Part(
    name="startup",
    title="Start-up",
    figures=(
        Figure("first registration", "ms"),
        Figure("restart, unchanged", "ms"),
        Figure("restart, one changed", "ms"),
        Figure("rows written for it", "rows"),
    ),
    contenders=("product", "ticks", "periodic_tasks", "apscheduler", "q2", "celery", "limit"),
    sizes=(1000, 10_000, 100_000),
    rounds=3,
    # Each needs a statement or several for every task, and minutes for more than this.
    caps=(("celery", 1000), ("periodic_tasks", 1000), ("apscheduler", 1000), ("q2", 1000)),
    share=5,
    patience=240,
    remarks=(
        "django-ticks is not asked for the first registration of more than 10,000 tasks, a"
        " statement for each: its rows are put there for it.",
    ),
)
