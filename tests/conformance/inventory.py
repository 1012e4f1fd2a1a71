"""What each text demands, kept beside the list: the texts are not in every checkout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path

from .requirements import DOCUMENTS
from .specifications import Demand, demands, text_of

INVENTORY = Path(__file__).with_name("inventory.json")
THEORY = "004"


def kept() -> dict[str, list[Demand]]:
    """Read what was found in the texts when they were last at hand."""
    found = json.loads(INVENTORY.read_text(encoding="utf-8"))
    return {document: [Demand(*each) for each in rows] for document, rows in found.items()}


def found_in(document: str) -> list[Demand] | None:
    """Look through a text, ``None`` where it is not there.

    Args:
        document: its number.
    """
    text = text_of(document)
    return None if text is None else demands(text, is_theory=document == THEORY)


def write() -> None:
    """Keep what the texts demand; where one is not there, what was kept of it stays."""
    before = kept()
    now = {each: found_in(each) or before.get(each, []) for each in DOCUMENTS}
    INVENTORY.write_text(_worded(now), encoding="utf-8")


def _worded(inventory: Mapping[str, list[Demand]]) -> str:
    documents = []
    for document, rows in inventory.items():
        lines = ",\n".join(f"  {json.dumps(astuple(row), ensure_ascii=False)}" for row in rows)
        documents.append(f'"{document}": [\n{lines}\n]')
    return "{\n" + ",\n".join(documents) + "\n}\n"
