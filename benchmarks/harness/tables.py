"""Results as tables: for a terminal, and for the documentation."""

from __future__ import annotations

from collections.abc import Sequence

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


def cell(found: Summary | None, line: str = " ") -> str:
    """Say one figure: median, spread, statements, and how much of it was right.

    Args:
        found: the figure, if it was measured.
        line: what parts the first two from the last two.
    """
    if found is None:
        return NOTHING
    measured = number(found.median)
    if found.rounds > 1:
        measured += f" ({number(found.low)}–{number(found.high)})"
    words = []
    if found.statements is not None:
        words.append(f"{found.statements:.0f}q")
    if found.of is not None:
        words.append(f"{found.right:,}/{found.of:,}")
    return line.join([measured, " ".join(words)] if words else [measured])


def table(
    part: Part, rows: list[Row], figures: Sequence[Figure] = (), line: str = " "
) -> list[list[str]]:
    """Lay the results out, the head first.

    Args:
        part: whose.
        rows: what was found.
        figures: the columns; all that were measured unless told.
        line: what parts a cell's figure from what was counted.
    """
    shown = figures or _measured(part, rows)
    sizes = len({row.size for row in rows}) > 1
    head = ["", *([part.size_unit] if sizes else []), *(_head(each) for each in shown)]
    body = []
    for row in rows:
        contender = CONTENDERS[row.contender]
        version = row.versions.get(contender.distribution, "").removesuffix(" (checkout)")
        name = f"{contender.label} {version}".strip()
        cells = [cell(summary(row.samples, each.name), line) for each in shown]
        if row.trouble:
            cells = [row.trouble[:60] if each == NOTHING else each for each in cells[:1]] + cells[
                1:
            ]
        body.append([name, *([f"{row.size:,}"] if sizes else []), *cells])
    return [head, *body]


def _measured(part: Part, rows: list[Row]) -> list[Figure]:
    return [each for each in part.figures if any(summary(r.samples, each.name) for r in rows)]


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
    return "\n".join([part.title, *padded, *(f"- {remark}" for remark in part.remarks)])


def markdown(part: Part, rows: list[Row]) -> str:
    """Give the tables for a page: one for each size, and for each table that figures name.

    Args:
        part: whose.
        rows: what was found.
    """
    sizes = list(dict.fromkeys(row.size for row in rows))
    blocks = []
    for size in sizes:
        of_size = [row for row in rows if row.size == size]
        shown = _measured(part, of_size) or list(part.figures[:1])
        for name in dict.fromkeys(each.table for each in shown):
            among = [f"{size:,} {part.size_unit}"] if len(sizes) > 1 else []
            title = ": ".join([*among, *([name] if name else [])])
            columns = [each for each in shown if each.table == name]
            taking = [row for row in of_size if _has(row, columns) or row.trouble]
            lines = _lines(table(part, taking, columns, "<br>"))
            blocks.append("\n".join([*([f"**{title}**", ""] if title else []), *lines]))
    return "\n\n".join(blocks)


def _has(row: Row, figures: Sequence[Figure]) -> bool:
    return any(summary(row.samples, each.name) for each in figures)


def _lines(laid: list[list[str]]) -> list[str]:
    head, *body = laid
    rule = ["---"] * len(head)
    return ["| " + " | ".join(line) + " |" for line in (head, rule, *body)]
