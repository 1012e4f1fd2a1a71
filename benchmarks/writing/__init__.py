"""How late runs begin while the results of the last minute are being written."""

from __future__ import annotations

from ..harness.parts import Figure, Part

PART = Part(
    name="writing",
    title="Lateness while results are written",
    figures=(Figure("median", "ms"), Figure("worst", "ms"), Figure("results written", "runs")),
    contenders=("product",),
    sizes=(1000, 100_000),
    rounds=1,
    share=3,
    patience=400,
    remarks=(
        "1,000 runs of coroutines end within the quarter of a second around the minute, and"
        " their results are written while ten other runs begin; three minutes in a row.",
    ),
)
