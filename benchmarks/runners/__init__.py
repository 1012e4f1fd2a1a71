"""What a run costs with each runner, from the hand-over to the call, and to its end."""

from __future__ import annotations

from ..harness.parts import Figure, Part

PART = Part(
    name="runners",
    title="Runners",
    figures=(
        Figure("start", "ms"),
        Figure("slowest start", "ms"),
        Figure("whole run", "ms"),
        Figure("runs, ten at a time", "per second", more_is_better=True),
    ),
    contenders=("thread", "coroutine", "process", "limit"),
    sizes=(500,),
    size_unit="runs",
    rounds=3,
    share=1,
    remarks=(
        "The bare limit is a fork of a small process that only says what time it is, and the"
        " wait for its end.",
    ),
)
