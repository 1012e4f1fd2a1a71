"""The documentation as data: blocks, tables, headings and links of each page."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..conftest import CHECKOUT

_TABLES = runpy.run_path(str(CHECKOUT / "docs" / "_ext" / "tables.py"))
expand, generate = _TABLES["expand"], _TABLES["generate"]

_MARKER = re.compile(r"<!-- (.+) -->")
_FENCE = re.compile(r"```(\w*|\{[\w-]+\}.*)")
_LINK = re.compile(r"\[[^\]]*\]\(([^)]+)\)")
_HEADING = re.compile(r"#{1,6} (.+)")
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block; its marker is what the comment right above it says."""

    place: str
    language: str
    marker: str
    text: str

    def __str__(self) -> str:
        return self.place


Row = dict[str, str]


@dataclass(frozen=True)
class Page:
    """One page."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def blocks(self) -> list[Block]:
        return list(blocks(self.name, self.text))

    @property
    def prose(self) -> str:
        return re.sub(r"^```.*?^```$", "", self.text, flags=re.MULTILINE | re.DOTALL)

    @property
    def links(self) -> list[str]:
        return _LINK.findall(self.prose)

    @property
    def anchors(self) -> set[str]:
        """Give the anchors that headings make, spelled as GitHub does."""
        return {_slug(heading) for heading in _headings(self.prose)}

    def table(self, *header: str) -> list[Row]:
        return [
            dict(zip(header, row, strict=True))
            for table in _tables(self.prose)
            if tuple(table[0]) == header
            for row in table[2:]
        ]


def blocks(name: str, text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a text."""
    lines = text.splitlines()
    position = 0
    while position < len(lines):
        opening = _FENCE.fullmatch(lines[position])
        if opening is None:
            position += 1
            continue
        marker = _MARKER.fullmatch(lines[position - 1]) if position else None
        end = lines.index("```", position + 1)
        body = "".join(f"{line}\n" for line in lines[position + 1 : end])
        place = f"{name}:{position + 1}"
        yield Block(place, opening[1], marker[1] if marker else "", body)
        position = end + 1


def codes(cell: str) -> list[str]:
    return _CODE.findall(cell)


def code(cell: str) -> str:
    """Give the one word in backquotes of a cell."""
    (word,) = codes(cell)
    return word


def _headings(text: str) -> list[str]:
    return [match[1] for line in text.splitlines() if (match := _HEADING.fullmatch(line))]


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _tables(text: str) -> Iterator[list[list[str]]]:
    for match in re.finditer(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE):
        yield [
            [cell.strip() for cell in line.strip().strip("|").split("|")]
            for line in match[0].splitlines()
        ]


def read(path: Path) -> Page:
    """Read a page, with its generated parts."""
    return Page(path, expand(path.read_text(encoding="utf-8")))


README = read(CHECKOUT / "README.md")
DOCS = {page.name: page for page in map(read, sorted((CHECKOUT / "docs").glob("*.md")))}
PAGES = [README, *DOCS.values()]
