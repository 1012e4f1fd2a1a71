"""The list of what the specifications demand, as data."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("requirements.toml")

DOCUMENTS = {
    "000": "Declarative Polling Scheduler, formal specification",
    "001": "Declarative Scheduler",
    "003": "Declarative Polling Scheduler, version 1.0 draft",
    "004": "Declarative Scheduler Theory",
}
AXIOMS = (*(f"S{n}" for n in range(1, 6)), *(f"L{n}" for n in range(1, 4)))
AXIOMS += tuple(f"EA{n}" for n in range(1, 7))
KINDS = {"MUST", "MUST NOT", "SHALL", "SHALL NOT", "SHOULD", "SHOULD NOT", "REQUIRED"}
KINDS |= {"RECOMMENDED", "must", "should", *AXIOMS}


@dataclass(frozen=True)
class Clause:
    """One thing that is demanded.

    Args:
        text: in our words.
        tests: nodes that show it.
        decision: key of what holds where the texts disagree, or empty.
    """

    text: str
    tests: tuple[str, ...]
    decision: str


@dataclass(frozen=True)
class Requirement:
    """One keyword, or one axiom, of one or several documents.

    Args:
        documents: that have it.
        section: where it stands, headings joined by `` / ``.
        renamed: the section in documents that call it otherwise.
        kind: the keyword, in small letters where the text has it so; or the name of the axiom.
        clauses: what it rules; one, or those of a list.
        decision: of the whole, or empty.
    """

    documents: tuple[str, ...]
    section: str
    renamed: dict[str, str]
    kind: str
    clauses: tuple[Clause, ...]
    decision: str

    def section_in(self, document: str) -> str:
        """Give the section in a document."""
        return self.renamed.get(document, self.section)


@dataclass(frozen=True)
class Decision:
    """What holds where the texts disagree, among each other or with us."""

    key: str
    about: str
    texts: str
    holds: str
    why: str
    source: str


@dataclass(frozen=True)
class Listed:
    """A requirement with the names it goes by in its documents."""

    requirement: Requirement
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Summed:
    """One row of the summary that 002 ends with.

    Args:
        id: the name it has there.
        clause: what it asks for, and the tests that show it.
    """

    id: str
    clause: Clause


def load_ojs() -> list[Summed]:
    """Read the rows of 002."""
    data = tomllib.loads(SOURCE.read_text(encoding="utf-8"))
    return [Summed(each.pop("id"), _clause(each)) for each in data["ojs"]]


def load() -> tuple[list[Listed], list[Decision]]:
    """Read the list."""
    data = tomllib.loads(SOURCE.read_text(encoding="utf-8"))
    requirements = [_requirement(each) for each in data["requirement"]]
    decisions = [Decision(key, **fields) for key, fields in data["decisions"].items()]
    return list(_listed(requirements)), decisions


def _requirement(data: dict[str, Any]) -> Requirement:
    clauses = [_clause(each) for each in data.pop("clause", [])]
    if "text" in data:
        clauses = [_clause({"text": data.pop("text"), "tests": data.pop("tests")})]
    return Requirement(
        documents=tuple(data.pop("documents")),
        section=data.pop("section"),
        renamed=data.pop("renamed", {}),
        kind=data.pop("kind"),
        clauses=tuple(clauses),
        decision=data.pop("decision", ""),
        **data,
    )


def _clause(data: dict[str, Any]) -> Clause:
    return Clause(data.pop("text"), tuple(data.pop("tests")), data.pop("decision", ""), **data)


def _listed(requirements: list[Requirement]) -> Iterator[Listed]:
    """Number the requirements of each section of each document."""
    numbers: Counter[tuple[str, str]] = Counter()
    for requirement in requirements:
        ids = []
        for document in requirement.documents:
            section = requirement.section_in(document)
            numbers[document, section] += 1
            ids.append(f"{document}-{_slug(section)}-{numbers[document, section]}")
        yield Listed(requirement, tuple(ids))


def _slug(section: str) -> str:
    words = re.sub(r"\([^)]*\)", "", section.rpartition(" / ")[2]).casefold()
    return "-".join(re.findall(r"[a-z]+", words))
