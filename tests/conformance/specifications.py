"""The texts of the specifications, where they lie beside the checkout: they are no part of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(
    os.environ.get("DDC_SPECIFICATIONS") or Path(__file__).parents[3] / "shared" / "specs"
)

_KEYWORD = re.compile(r"\b(MUST NOT|MUST|SHALL NOT|SHALL|SHOULD NOT|SHOULD|REQUIRED|RECOMMENDED)\b")
_HEADING = re.compile(r"(#+) (.+)")
_ITEM = re.compile(r"( *)(?:[-*]|\d+\.) ")
# The one section that speaks of the words themselves.
_OF_THE_WORDS = "Normative Language"
# The theory demands by these, and by words that it does not write in capitals.
_AXIOM = re.compile(r"\*\*((?:S|L|EA)\d+) [-—] ")
_IN_SENTENCES = re.compile(rf"{_KEYWORD.pattern}|\b([Mm]ust|[Ss]hould)\b")
_INFORMATIVE = ("Preamble / Purpose", "Real-World Assumptions and the Limits of Conformance")


@dataclass(frozen=True)
class Demand:
    """One keyword of a text.

    Args:
        section: headings joined by `` / ``.
        kind: the keyword.
        items: number of the innermost items of the list it rules, 0 where it rules none.
    """

    section: str
    kind: str
    items: int


def text_of(document: str) -> str | None:
    """Give a text, ``None`` where it is not there.

    Args:
        document: its number.
    """
    for path in sorted(FOLDER.glob(f"{document}_*.txt")):
        return path.read_text(encoding="utf-8")
    return None


def demands(text: str, *, is_theory: bool = False) -> list[Demand]:
    """Find every keyword of a text outside its code.

    Args:
        text: Markdown.
        is_theory: whether it demands by axioms and plain sentences too.
    """
    lines, found, path = list(_without_code(text)), [], {}
    for number, line in enumerate(lines):
        if heading := _HEADING.fullmatch(line):
            level = len(heading[1])
            path = {key: name for key, name in path.items() if key < level}
            path[level] = heading[2].strip()
            continue
        section = " / ".join(path[key] for key in sorted(path) if key > 1)
        if not section.endswith(_OF_THE_WORDS):
            kinds = _demanding(line, section) if is_theory else _KEYWORD.findall(line)
            found += [Demand(section, kind, 0) for kind in kinds[:-1]]
            found += [Demand(section, kind, _items(lines, number)) for kind in kinds[-1:]]
    return found


def _demanding(line: str, section: str) -> list[str]:
    if axiom := _AXIOM.match(line):
        return [axiom[1]]
    if section.startswith(_INFORMATIVE):
        return _KEYWORD.findall(line)
    words = (each[0] for each in _IN_SENTENCES.finditer(line))
    return [word if word.isupper() else word.lower() for word in words]


def _without_code(text: str) -> Iterator[str]:
    inside = False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = not inside
            yield ""
        else:
            yield "" if inside else line


def _items(lines: list[str], number: int) -> int:
    """Count what is listed after a line that ends in a colon, but for demands of their own."""
    if not lines[number].rstrip("*").endswith(":"):
        return 0
    following = lines[number + 1 :]
    while following and not following[0]:
        following = following[1:]
    items: list[tuple[int, str]] = []
    for line in following:
        item = _ITEM.match(line)
        if item is None and line:
            break
        if item is not None:
            items.append((len(item[1]), line))
    depths = [depth for depth, _ in items] + [0]
    innermost = [line for place, (depth, line) in enumerate(items) if depths[place + 1] <= depth]
    return sum(not _KEYWORD.search(line) for line in innermost)
