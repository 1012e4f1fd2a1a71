"""Results as tables: for a terminal, and for the documentation."""

from __future__ import annotations

from .contenders import CONTENDERS
from .parts import Figure, Part
from .results import Summary, summary
from .rounds import Row

NOTHING = "–"


def number(value: float) -> str:
    """Give a number with as many digits as it means.

    Args:
        value: any.
    """
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 or not value else f"{value:.1g}"


def cell(found: Summary | None) -> str:
    """Say one figure: median, spread, statements, and how much of it was right.

    Args:
        found: the figure, if it was measured.
    """
    if found is None:
        return NOTHING
    words = [number(found.median)]
    if found.rounds > 1:
        words.append(f"({number(found.low)}–{number(found.high)})")
    if found.statements is not None:
        words.append(f"{found.statements:.0f}q")
    if found.of is not None:
        words.append(f"{found.right:,}/{found.of:,}")
    return " ".join(words)


def table(part: Part, rows: list[Row]) -> list[list[str]]:
    """Lay the results out, the head first.

    Args:
        part: whose.
        rows: what was found.
    """
    shown = [each for each in part.figures if any(summary(r.samples, each.name) for r in rows)]
    sizes = len({row.size for row in rows}) > 1
    head = ["", *([part.size_unit] if sizes else []), *(_head(each) for each in shown)]
    body = []
    for row in rows:
        contender = CONTENDERS[row.contender]
        version = row.versions.get(contender.distribution, "")
        name = f"{contender.label} {version}".strip()
        cells = [cell(summary(row.samples, each.name)) for each in shown]
        if row.trouble:
            cells = [row.trouble[:60] if each == NOTHING else each for each in cells[:1]] + cells[
                1:
            ]
        body.append([name, *([f"{row.size:,}"] if sizes else []), *cells])
    return [head, *body]


def _head(figure: Figure) -> str:
    return f"{figure.name}, {figure.unit}"


def text(part: Part, rows: list[Row]) -> str:
    """Give the table for a terminal.

    Args:
        part: whose.
        rows: what was found.
    """
    lines = table(part, rows)
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    padded = [
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([part.title, *padded])


def markdown(part: Part, rows: list[Row]) -> str:
    """Give the table for a page.

    Args:
        part: whose.
        rows: what was found.
    """
    head, *body = table(part, rows)
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *body))
