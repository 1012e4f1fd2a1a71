"""What the pages of the admin cost with a long history behind them."""

from __future__ import annotations

from ..harness.parts import Figure, Part

RUNS = 1_000_000
"""How many runs there are in all, with a thousand tasks and more."""

PART = Part(
    name="pages",
    title="Pages of the admin",
    figures=(
        Figure("tasks", "ms", table="Tasks"),
        Figure("tasks, last page", "ms", table="Tasks"),
        Figure("tasks, search", "ms", table="Tasks"),
        Figure("tasks, last run failed", "ms", table="Tasks"),
        Figure("one task", "ms", table="One of them, and times"),
        Figure("runs", "ms", table="Runs"),
        Figure("runs, last page", "ms", table="Runs"),
        Figure("runs, search", "ms", table="Runs"),
        Figure("one run", "ms", table="Runs"),
        Figure("month", "ms", table="One of them, and times"),
        Figure("day", "ms", table="One of them, and times"),
        Figure("schedulers", "ms", table="One of them, and times"),
    ),
    contenders=("product", "plain", "q2", "celery"),
    sizes=(1000, 10_000),
    rounds=3,
    is_by_processor=True,
    share=4,
    patience=300,
    remarks=("1,000,000 runs in all with 1,000 tasks and more; fewer tasks have 20 runs each.",),
)


def runs_of(tasks: int) -> int:
    """Give how many runs each task has.

    Args:
        tasks: how many there are.
    """
    return RUNS // tasks if tasks >= 1000 else 20
