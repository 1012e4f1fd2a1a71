"""What the pages of the admin cost with a long history behind them."""

from __future__ import annotations

from ..harness.parts import Figure, Part

RUNS = 1_000_000
"""How many runs there are with a thousand tasks and more."""

PART = Part(
    name="pages",
    title="Pages of the admin, with 1,000,000 runs",
    figures=(
        Figure("tasks", "ms"),
        Figure("tasks, last page", "ms"),
        Figure("tasks, search", "ms"),
        Figure("tasks, last run failed", "ms"),
        Figure("one task", "ms"),
        Figure("runs", "ms"),
        Figure("runs, last page", "ms"),
        Figure("runs, search", "ms"),
        Figure("one run", "ms"),
        Figure("month", "ms"),
        Figure("day", "ms"),
        Figure("schedulers", "ms"),
    ),
    contenders=("product", "plain", "q2", "celery"),
    sizes=(1000, 10_000),
    rounds=5,
    is_by_processor=True,
)


def runs_of(tasks: int) -> int:
    """Give how many runs each task has.

    Args:
        tasks: how many there are.
    """
    return RUNS // tasks if tasks >= 1000 else 20
