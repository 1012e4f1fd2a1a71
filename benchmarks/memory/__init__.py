"""What a process that only waits takes: memory, processor, and statements."""

from __future__ import annotations

from ..harness.parts import Figure, Part

PART = Part(
    name="memory",
    title="Waiting",
    figures=(
        Figure("memory before", "MB"),
        Figure("memory", "MB"),
        Figure("one core", "%"),
        Figure("transactions", "per second"),
    ),
    contenders=("product", "apscheduler", "periodic_tasks", "celery", "procrastinate", "limit"),
    sizes=(1000, 10_000, 100_000),
    rounds=3,
    is_fresh=True,
    # Only to have so many there takes them minutes.
    caps=(
        *(("apscheduler", 10_000), ("celery", 10_000), ("procrastinate", 10_000)),
        ("periodic_tasks", 10_000),
    ),
    share=4,
)
