"""The conformance page, written from the list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from .requirements import DOCUMENTS, Clause, Decision, Listed, Summed

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"

HEAD = """\
# Conformance

Every MUST and SHOULD of the specifications that this scheduler is built to, and the tests that
show it. `python -m tests.conformance` writes this page from `tests/conformance/requirements.toml`;
tests hold that it is up to date, that every test it names exists, and that no demand of the texts
is missing. Sections are those of the texts; what they say is told in our words. What each text
demands is kept in `tests/conformance/inventory.json`; where the texts lie beside the checkout, or
`DDC_SPECIFICATIONS` says where they are, it is compared with them.
"""

AFTER_DOCUMENTS = """\
Newer wins over older: 004, 001, 000, 003. Only 003 has the log contract, a section on security and
an appendix on conformance; these stand. 004 demands by formulas, and by sentences that have their
must and should in small letters: each axiom and each such sentence has a row, and
[`cron verify`](commands.md#cron) judges any stored history by the axioms. The axioms of 000 and 001
are earlier forms of those of 004, which stand in their place.
"""

OJS = """\
## Open Job Spec

002, the Open Job Spec for cron and periodic jobs, is what the [long form](profiles.md) follows. It
ends with a summary of what it demands; these are its rows.

| demand | what it asks for | shown by |
| --- | --- | --- |"""

DECISIONS = """\
## Where the texts disagree

Among each other, with themselves or with what a Django project needs. What holds is what
[When a task runs](semantics.md) describes.
"""


def page(listed: Iterable[Listed], decisions: Iterable[Decision], ojs: Iterable[Summed]) -> str:
    """Write the page.

    Args:
        listed: the requirements, numbered.
        ojs: the rows of 002.
        decisions: what holds where the texts disagree.
    """
    listed, decisions = list(listed), list(decisions)
    anchors = {decision.key: anchor(decision.about) for decision in decisions}
    parts = [HEAD, *_documents(listed), AFTER_DOCUMENTS]
    for section, group in groupby(listed, key=lambda each: each.requirement.section):
        parts += _section(section, list(group), anchors)
    parts += [OJS, *(f"| {row.id} | {row.clause.text} | {_shown(row.clause)} |" for row in ojs), ""]
    parts += [DECISIONS, *map(_decision, decisions)]
    return "\n".join(parts)


def anchor(heading: str) -> str:
    """Give the anchor that a heading makes.

    Args:
        heading: its text.
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _documents(listed: list[Listed]) -> Iterator[str]:
    lines = ["| document | what it is | demands |", "| --- | --- | --- |"]
    for document, title in DOCUMENTS.items():
        count = sum(document in each.requirement.documents for each in listed)
        lines.append(f"| {document} | {title} | {count} |")
    yield "\n".join(lines) + "\n"


def _section(section: str, group: list[Listed], anchors: Mapping[str, str]) -> Iterator[str]:
    heading = section.replace(" / ", ", ")
    yield f"## {heading}\n"
    yield from _other_names(group)
    lines = ["| demand | what it asks for | shown by |", "| --- | --- | --- |"]
    for each in group:
        requirement = each.requirement
        for number, clause in enumerate(requirement.clauses):
            first = number == 0
            ids = "<br>".join([requirement.kind, *each.ids]) if first else ""
            decision = (requirement.decision if first else "") or clause.decision
            lines.append(f"| {ids} | {_said(clause, decision, anchors)} | {_shown(clause)} |")
    yield "\n".join(lines) + "\n"


def _other_names(group: list[Listed]) -> Iterator[str]:
    names: dict[str, str] = {}
    for each in group:
        names |= each.requirement.renamed
    for document, name in names.items():
        yield f"In {document}: {name.replace(' / ', ', ')}.\n"


def _said(clause: Clause, decision: str, anchors: Mapping[str, str]) -> str:
    return f"{clause.text} [Decided](#{anchors[decision]})" if decision else clause.text


def _shown(clause: Clause) -> str:
    return "<br>".join(f"`{test}`" for test in clause.tests)


def _decision(decision: Decision) -> str:
    return (
        f"### {decision.about}\n\n"
        f"- The texts: {decision.texts}\n"
        f"- What holds: {decision.holds}\n"
        f"- Why: {decision.why} (Semantics: {decision.source}.)\n"
    )
