"""The page on conformance, from the list of requirements and the marks of the tests."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[2]

DOCUMENTS = {
    "000": "Declarative Polling Scheduler, formal specification",
    "001": "Declarative Scheduler",
    "002": "Open Job Spec for cron and periodic jobs",
    "003": "Declarative Polling Scheduler, version 1.0 draft",
    "004": "Declarative Scheduler Theory",
}

HEAD = """\
# Conformance

This page lists the requirements of the specifications that the scheduler implements, in our words,
with the tests that show each of them. It is generated from `tests/docs/requirements.toml` and from
the marks `@pytest.mark.requirement("id")` of the tests.

| document | title | requirements |
| --- | --- | --- |
"""

AFTER_DOCUMENTS = """
Newer documents win over older ones: 004, 001, 000, 003. Only 003 has a log contract, a section on
security and an appendix on conformance, so these apply. 004 has axioms, and sentences with *must*
and *should* in small letters: each of them is listed, and
[`cron verify`](commands.md#verify) checks the stored history of tasks with the overlap policy
`coalesce` and a fixed retry delay against the axioms. The axioms of 004 replace their earlier forms
in 000 and 001. The [long form](profiles.md) of a task follows 002, the Open Job Spec; its
requirements are those of the summary at its end.
"""

DECISIONS = """
## Where the texts disagree

The specifications contradict each other, themselves or the needs of a Django project in these
places. [When a task runs](semantics.md) describes the resulting behaviour.
"""


@dataclass(frozen=True)
class Requirement:
    """One thing that one or several documents require."""

    id: str
    section: str
    documents: str
    level: str
    text: str
    decision: str = ""


def load() -> tuple[list[Requirement], dict[str, dict[str, str]]]:
    """Return the requirements, and the decisions by their keys."""
    source = Path(__file__).with_name("requirements.toml").read_text(encoding="utf-8")
    data: dict[str, Any] = tomllib.loads(source)
    requirements = [
        Requirement(key, section, *row)
        for section, rows in data["requirements"].items()
        for key, row in rows.items()
    ]
    return requirements, data["decisions"]


def marked() -> dict[str, list[str]]:
    """Return the tests of each requirement, without importing them."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((CHECKOUT / "tests").rglob("test_*.py")):
        name = path.relative_to(CHECKOUT).as_posix()
        for function, key in marks_in(path.read_text(encoding="utf-8")):
            found[key].append(f"{name}::{function}")
    return found


def marks_in(source: str) -> Iterator[tuple[str, str]]:
    """Yield each test function of a module with each requirement that it is marked with."""
    if "mark.requirement" not in source:
        return
    for node in ast.parse(source).body:
        for decorator in getattr(node, "decorator_list", []):
            if ast.unparse(decorator).startswith("pytest.mark.requirement("):
                yield from ((node.name, ast.literal_eval(each)) for each in decorator.args)


def page(tests: Mapping[str, list[str]]) -> str:
    """Return the text of the page."""
    requirements, decisions = load()
    lines = [HEAD.rstrip()]
    for document, title in DOCUMENTS.items():
        count = sum(document in each.documents for each in requirements)
        lines.append(f"| {document} | {title} | {count} |")
    lines.append(AFTER_DOCUMENTS.rstrip())
    section = ""
    for each in requirements:
        if each.section != section:
            section = each.section
            lines += ["", f"## {section.replace(' / ', ', ')}", ""]
            lines += ["| requirement | text | tests |", "| --- | --- | --- |"]
        lines.append(_row(each, tests.get(each.id, []), decisions))
    lines.append(DECISIONS.rstrip())
    lines += [_decision(each) for each in decisions.values()]
    return "\n".join(lines) + "\n"


def _row(each: Requirement, tests: list[str], decisions: Mapping[str, Mapping[str, str]]) -> str:
    text = each.text
    if each.decision:
        text += f" [Decided](#{_anchor(decisions[each.decision]['about'])})"
    source = f"{each.level} in {each.documents.replace(' ', ', ')}"
    return f"| {each.id}<br>{source} | {text} | {'<br>'.join(f'`{test}`' for test in tests)} |"


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _decision(fields: Mapping[str, str]) -> str:
    return (
        f"\n### {fields['about']}\n\n"
        f"- The texts: {fields['texts']}\n"
        f"- Decision: {fields['holds']}\n"
        f"- Why: {fields['why']} (Semantics: {fields['source']}.)"
    )
