"""How many runs of a callback that does nothing are called and recorded in a second."""

from __future__ import annotations

from ..harness.parts import Figure, Part

PART = Part(
    name="throughput",
    title="Throughput",
    figures=(
        Figure("recorded runs", "per second", more_is_better=True),
        Figure("in batches of 100", "per second", more_is_better=True),
    ),
    contenders=(
        *("product", "product_sqlite", "procrastinate", "tasks_db", "q2", "apscheduler", "huey"),
        "limit",
    ),
    sizes=(5000,),
    size_unit="runs",
    rounds=5,
    share=2.5,
    patience=180,
)
