"""Results as pictures: one for each figure that is worth one. Needs the group ``benchmarks``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

from .contenders import CONTENDERS
from .parts import Figure, Part
from .results import Summary, summary
from .rounds import Row

DRAWN = {
    "cron": "next, New York",
    "startup": "restart, unchanged",
    "tick": "idle",
    "lateness": "median",
    "edits": "worst",
    "throughput": "recorded runs",
    "memory": "memory",
    "runners": "start",
    "pages": "tasks",
}
"""The figure of each part that has a picture."""

# The same picture each time: no random ids, no date; and words stay words.
# A grey that is read on white and on black, and nothing behind it.
_GREY = "#7f7f7f"
_STEADY: Any = {
    "svg.hashsalt": "speed",
    "svg.fonttype": "none",
    "font.size": 9,
    "savefig.transparent": True,
    "legend.framealpha": 0,
    **dict.fromkeys(
        (
            *("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"),
            "grid.color",
        ),
        _GREY,
    ),
}


def draw(part: Part, rows: list[Row], folder: Path) -> Path | None:
    """Draw a part's figure: over the sizes, or as points where there is one size.

    Args:
        part: whose.
        rows: what was found.
        folder: where the picture is put.
    """
    figure = next((each for each in part.figures if each.name == DRAWN.get(part.name)), None)
    if figure is None:
        return None
    found = [(row, got) for row in rows if (got := summary(row.samples, figure.name))]
    path = folder / f"{part.name}.svg"
    with matplotlib.rc_context(_STEADY):
        canvas, axes = pyplot.subplots(figsize=(6.4, 3.2), layout="constrained")
        if len({row.size for row, _ in found}) > 1:
            _lines(axes, part, figure, found)
        else:
            _points(axes, figure, found)
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":
                axis.set_major_formatter("{x:,.10g}")
        canvas.savefig(path, metadata={"Date": None})
        pyplot.close(canvas)
    return path


def _lines(axes: Any, part: Part, figure: Figure, found: list[tuple[Row, Summary]]) -> None:
    for contender in dict.fromkeys(row.contender for row, _ in found):
        points = [(row.size, got.median) for row, got in found if row.contender == contender]
        axes.plot(*zip(*points, strict=True), marker="o", label=CONTENDERS[contender].label)
    axes.set(xscale="log", yscale="log", xlabel=part.size_unit)
    axes.set_ylabel(f"{figure.name}, {figure.unit}")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8)


def _points(axes: Any, figure: Figure, found: list[tuple[Row, Summary]]) -> None:
    shown = found[::-1]
    names = [CONTENDERS[row.contender].label for row, _ in shown]
    medians = [got.median for _, got in shown]
    spread = [
        [got.median - got.low for _, got in shown],
        [got.high - got.median for _, got in shown],
    ]
    axes.errorbar(medians, names, xerr=spread, fmt="o", capsize=3)
    axes.set(xscale="log", xlabel=f"{figure.name}, {figure.unit}")
    axes.margins(y=0.1)
    axes.grid(visible=True, alpha=0.3)
