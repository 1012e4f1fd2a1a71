"""How late runs begin while a very long history is being forgotten."""

from __future__ import annotations

from ..harness.parts import Figure, Part

PART = Part(
    name="pruning",
    title="Lateness while old runs are forgotten",
    figures=(
        Figure("median", "ms"),
        Figure("worst", "ms"),
        Figure("forgotten", "runs a minute", more_is_better=True),
    ),
    contenders=("product",),
    sizes=(1_000_000,),
    size_unit="old runs",
    rounds=2,
    remarks=("To be seen beside the lateness of declarative-cron among 1,000 tasks.",),
    share=3,
    patience=240,
)
