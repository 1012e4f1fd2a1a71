"""How long after its minute a run is called, with default settings and the machine's clock."""

from __future__ import annotations

from ..harness.parts import Figure, Part

DUE = 10
"""How many tasks are due each minute; the others never are."""

PART = Part(
    name="lateness",
    title="Lateness",
    figures=(Figure("median", "ms"), Figure("worst", "ms")),
    contenders=(
        *("product", "apscheduler", "procrastinate", "celery", "periodic_tasks", "q2"),
        "limit",
    ),
    sizes=(1000, 100_000),
    rounds=3,
    remarks=(
        "declarative-cron: two minutes in a row with each round, everybody else one: it has"
        " twice as many calls of which one may be the worst.",
    ),
    # More of them take minutes to be registered; procrastinate asks each of them every minute.
    caps=(
        *(("apscheduler", 1000), ("celery", 1000), ("periodic_tasks", 1000), ("q2", 1000)),
        ("procrastinate", 1000),
    ),
    share=10,
    patience=240,
)
