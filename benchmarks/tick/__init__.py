"""What one pass costs among many tasks: with nothing due, and with some of them due at once."""

from __future__ import annotations

from ..harness.parts import Figure, Part

DUE = (10, 1000, 10_000)
"""How many are due at once, as far as there are so many and a contender takes them."""

PART = Part(
    name="tick",
    title="One pass",
    figures=(
        Figure("idle", "ms", table="With nothing due"),
        *(
            Figure(f"{number:,} due{step}", "ms", table=f"With {number:,} due at once")
            for number in DUE
            for step in ("", ", recorded", ", in all")
        ),
    ),
    contenders=("product", "apscheduler", "q2", "periodic_tasks", "ticks", "celery", "limit"),
    sizes=(1000, 10_000, 100_000),
    rounds=5,
    share=4,
    remarks=(
        "Idle: the median of fifty passes, each after a pause of 10 ms, when ten are over.",
        "celery-beat starts one task with each tick, and compares the schedules of all tasks"
        " before each: a pass among N tasks costs N for every due one.",
    ),
    # Only to have so many there takes them minutes.
    caps=(("apscheduler", 10_000), ("celery", 1000), ("ticks", 10_000)),
)
