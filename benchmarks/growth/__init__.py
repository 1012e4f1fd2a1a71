"""How much memory a process has gained after very many runs."""

from __future__ import annotations

from ..harness.parts import Figure, Part

PART = Part(
    name="growth",
    title="Memory gained by runs",
    figures=(Figure("growth", "MB"), Figure("recorded runs", "per second", more_is_better=True)),
    contenders=("product",),
    sizes=(200_000,),
    size_unit="runs",
    rounds=1,
    is_fresh=True,
    share=2,
    patience=400,
)
