"""The page ``docs/speed.md`` and its pictures, made from what was kept of the last runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from . import results, tables, targets, values
from .parts import NAMES, Part, part
from .rounds import Row

BUSY = (
    "**The machine was busy with other work**, so that everybody waited for a turn: times are"
    " several times too long, and where they lie close to each other nothing follows from it."
    " Statements, rows and what was right do not depend on that."
)
DOCS = Path(__file__).resolve().parents[2] / "docs"


def write(docs: Path = DOCS, folder: Path = results.FOLDER) -> None:
    """Put every kept result into the page, in place of what stands there.

    Args:
        docs: folder of the page and of the pictures.
        folder: of the results.
    """
    page = docs / "speed.md"
    text = page.read_text()
    for name in NAMES:
        found = results.load(name, folder)
        if found is not None and f"<!-- results of {name} -->" in text:
            rows, told = found
            picture = _draw(part(name), rows, docs / "speed")
            text = put(text, name, section(part(name), rows, told, picture))
    kept = values.kept(folder)
    text = put(text, "targets", targets.markdown(kept))
    page.write_text(text)


def put(text: str, name: str, section: str) -> str:
    """Put a section between its two markers.

    Args:
        text: of the page.
        name: of the part, as the markers have it.
        section: what stands between them.

    Raises:
        LookupError: the page has no place for it.
    """
    begin, end = f"<!-- results of {name} -->", f"<!-- end of {name} -->"
    found = re.compile(f"(?<={re.escape(begin)}).*?(?={re.escape(end)})", re.DOTALL)
    if not found.search(text):
        raise LookupError(f"the page lacks {begin} … {end}")
    return found.sub(lambda _: f"\n{section}\n", text)


def section(one: Part, rows: list[Row], told: dict[str, Any], picture: Path | None = None) -> str:
    """Give the table of a part, and under what circumstances it was measured.

    Args:
        one: the part.
        rows: what was found.
        told: what was kept beside it.
        picture: of it, in a folder beside the page.
    """
    facts = told["facts"]
    durable = "on" if facts.get("synchronous_commit") == "on" else "off"
    rounds = "1 round" if told["rounds"] == 1 else f"at most {told['rounds']} rounds"
    lines = [
        tables.markdown(one, rows),
        "",
        *(line for remark in one.remarks for line in (f"- {remark[0].upper()}{remark[1:]}", "")),
        f"{told['made']}; {facts['cores']} cores, Python {facts['python']}, PostgreSQL"
        f" {facts['postgresql']} with `synchronous_commit` {durable}; load of the machine"
        f" {facts['load_before']} before and {facts['load_after']} after; {rounds}.",
    ]
    if max(facts["load_before"], facts["load_after"]) > facts["cores"] and not one.is_by_processor:
        lines += ["", BUSY]
    if picture is not None:
        lines += ["", f"![{one.title}]({picture.parent.name}/{picture.name})"]
    return "\n".join(lines)


def _draw(one: Part, rows: list[Row], folder: Path) -> Path | None:
    from . import plots

    folder.mkdir(exist_ok=True)
    return plots.draw(one, rows, folder)
