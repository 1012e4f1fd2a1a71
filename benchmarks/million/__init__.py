"""One million tasks: to register them, to restart, to look, and what memory they take."""

from __future__ import annotations

from ..harness.parts import Figure, Part

PART = Part(
    name="million",
    title="One million tasks",
    figures=(
        Figure("registration", "s"),
        Figure("restart", "s"),
        Figure("idle", "ms"),
        Figure("memory", "MB"),
    ),
    contenders=("product", "limit"),
    sizes=(1_000_000,),
    rounds=1,
    is_fresh=True,
    share=4,
    patience=900,
    remarks=(
        "The registration is another process', as before a restart; memory is that of the one"
        " that restarted.",
    ),
)
