"""Figures, measurements of them, and the tables that show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .contenders import CONTENDERS

DASH = "–"


@dataclass(frozen=True)
class Figure:
    """A figure that a module measures.

    Args:
        what: its name, and the name of the rows that measure it.
        unit: of its values.
        target: the most that the product may take; the least if it is a rate.
        statements: the most statements that the product may send.
        is_rate: more is better.
    """

    what: str
    unit: str
    target: float | None = None
    statements: int | None = None
    is_rate: bool = False

    def is_reached(self, row: Row) -> bool:
        """Return whether a row of the product reaches the target."""
        if row.value is None:
            return False
        bound = row.value if self.target is None else self.target
        is_enough = row.value >= bound if self.is_rate else row.value <= bound
        return is_enough and (self.statements is None or (row.statements or 0) <= self.statements)

    @property
    def asked(self) -> str:
        """Return the target as text."""
        words = []
        if self.target is not None:
            words.append(f"{'≥' if self.is_rate else '≤'} {number(self.target)} {self.unit}")
        if self.statements is not None:
            words.append(f"≤ {_statements(self.statements)}")
        return ", ".join(words)


@dataclass(frozen=True)
class Row:
    """One measurement.

    Args:
        what: the figure; empty for a note on every figure of the module.
        value: in the unit of the figure, ``None`` if nothing was measured.
        statements: number of SQL statements, where they were counted.
        note: the reason why there is no value, or a limit of the comparison.
        contender: its id; the parent process writes it.
    """

    what: str = ""
    value: float | None = None
    statements: int | None = None
    note: str = ""
    contender: str = ""


def number(value: float) -> str:
    """Return a number with three significant digits."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def ratio(figure: Figure, row: Row, product: Row | None) -> str:
    """Return how many times better the product is, as text; empty if that is unknown."""
    if row.contender == "product" or product is None or not product.value or not row.value:
        return ""
    times = product.value / row.value if figure.is_rate else row.value / product.value
    return f"{number(times)}×"


class Table:
    """The rows of one or several modules: a line for each figure, a column for each contender."""

    def __init__(self) -> None:
        self._figures: list[Figure] = []
        self._cells: dict[tuple[str, str], Row] = {}
        self._notes: dict[str, set[str]] = {}

    def add(self, figures: Sequence[Figure], rows: Iterable[Row]) -> None:
        """Add the figures of a module and the rows that it measured."""
        self._figures += figures
        for row in rows:
            for figure in figures:
                # A note on the whole module fills the figures without a row of their own.
                if row.what == figure.what or not (row.what or self._cell(figure, row.contender)):
                    self._cells[figure.what, row.contender] = row

    def missed(self) -> list[str]:
        """Return the names of the figures whose target the product misses."""
        return [
            figure.what
            for figure in self._figures
            if figure.asked
            and not ((row := self._cell(figure, "product")) and figure.is_reached(row))
        ]

    def text(self) -> str:
        """Return the table for a terminal."""
        lines = self._lines(bold="{}")
        widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
        padded = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([*padded, *self._legend()])

    def markdown(self) -> str:
        """Return the table for the documentation."""
        head, *body = self._lines(bold="**{}**")
        rule = ["---"] * len(head)
        rows = [f"| {' | '.join(line)} |" for line in (head, rule, *body)]
        return "\n".join([*rows, "", *self._legend()])

    def _cell(self, figure: Figure, contender: str) -> Row | None:
        return self._cells.get((figure.what, contender))

    def _lines(self, bold: str) -> list[list[str]]:
        self._notes = {}
        names = [f"{each.label} {each.version or ''}".strip() for each in CONTENDERS.values()]
        head = ["", "target", *names]
        return [head, *(self._line(figure, bold) for figure in self._figures)]

    def _line(self, figure: Figure, bold: str) -> list[str]:
        product = self._cell(figure, "product")
        cells = []
        for contender in CONTENDERS:
            row = self._cell(figure, contender)
            shown = self._shown(figure, row, product)
            if row is product and row and row.value is not None and not figure.is_reached(row):
                shown = bold.format(f"{shown}, missed")
            cells.append(shown)
        return [figure.what, figure.asked, *cells]

    def _shown(self, figure: Figure, row: Row | None, product: Row | None) -> str:
        if row is None:
            return ""
        words = DASH
        if row.value is not None:
            words = f"{number(row.value)} {figure.unit}"
            if row.statements is not None:
                words += f", {_statements(row.statements)}"
            if times := ratio(figure, row, product):
                words += f" ({times})"
        return f"{words} [{self._reference(row)}]" if row.note else words

    def _reference(self, row: Row) -> int:
        self._notes.setdefault(row.note, set()).add(row.contender)
        return list(self._notes).index(row.note) + 1

    def _legend(self) -> list[str]:
        lines = []
        for position, (note, contenders) in enumerate(self._notes.items(), 1):
            labels = ", ".join(each.label for each in CONTENDERS.values() if each.id in contenders)
            lines.append(f"{position}. {labels}: {note}.")
        return lines


def _statements(count: int) -> str:
    return "1 statement" if count == 1 else f"{count:,} statements"
