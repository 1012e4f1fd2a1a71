"""The list is complete, its tests exist, and the page says what the list says."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache

import pytest

from ..conftest import CHECKOUT
from . import specifications
from .page import PAGE, page
from .requirements import DOCUMENTS, KINDS, Clause, Requirement, load
from .specifications import Demand

LISTED, DECISIONS = load()
REQUIREMENTS = [each.requirement for each in LISTED]
CLAUSES = [clause for each in REQUIREMENTS for clause in each.clauses]


def test_the_page_is_up_to_date() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(LISTED, DECISIONS), "run `python -m tests.conformance`"


@cache
def _functions(file: str) -> set[str]:
    path = CHECKOUT / file
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


def _is_there(node: str) -> bool:
    file, _, function = node.partition("::")
    return function.startswith("test_") and function in _functions(file)


@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: clause.text)
def test_every_clause_is_shown_by_tests_that_exist(clause: Clause) -> None:
    assert clause.tests
    assert [node for node in clause.tests if not _is_there(node)] == []
    assert len(set(clause.tests)) == len(clause.tests)


def test_a_test_that_is_not_there_would_be_found() -> None:
    here = "tests/conformance/test_page.py"
    assert _is_there(f"{here}::test_the_page_is_up_to_date")
    assert not _is_there(f"{here}::test_that_nobody_wrote")
    assert not _is_there("tests/missing.py::test_the_page_is_up_to_date")
    assert not _is_there(f"{here}::_is_there")


def test_the_list_is_well_formed() -> None:
    for each in REQUIREMENTS:
        assert set(each.documents) <= set(DOCUMENTS)
        assert set(each.renamed) <= set(each.documents)
        assert each.kind in KINDS
        assert each.clauses
    ids = [name for each in LISTED for name in each.ids]
    assert len(set(ids)) == len(ids)


def test_every_decision_is_there_and_of_use() -> None:
    named = {each.decision for each in REQUIREMENTS} | {clause.decision for clause in CLAUSES}
    assert named - {""} == {decision.key for decision in DECISIONS}


# --- against the texts, where they are -----------------------------------------


def _text(document: str) -> str:
    text = specifications.text_of(document)
    if text is None:
        pytest.skip("the specifications do not lie beside this checkout")
    return text


def _listed_in(document: str) -> dict[str, list[Requirement]]:
    sections = defaultdict(list)
    for each in REQUIREMENTS:
        if document in each.documents:
            sections[each.section_in(document)].append(each)
    return sections


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_demand_of_a_text_is_listed_once(document: str) -> None:
    found: dict[str, list[Demand]] = defaultdict(list)
    for demand in specifications.demands(_text(document)):
        found[demand.section].append(demand)
    listed = _listed_in(document)
    assert listed.keys() == found.keys()
    for section, demands in found.items():
        kinds = [each.kind for each in demands]
        assert [each.kind for each in listed[section]] == kinds, section
        for each, demand in zip(listed[section], demands, strict=True):
            if demand.items:
                assert len(each.clauses) == demand.items, (section, each)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_words_of_the_list_are_ours(document: str) -> None:
    text = " ".join(re.findall(r"[a-z]+", _text(document).casefold()))
    for clause in CLAUSES:
        words = re.findall(r"[a-z]+", clause.text.casefold())
        runs = (" ".join(words[at : at + 6]) for at in range(len(words) - 5))
        assert [run for run in runs if run in text] == [], clause.text


TEXT = """\
# A text

## Normative Language

The words "MUST" and "SHOULD" are words.

## First

It **MUST** be, and it SHOULD NOT be otherwise.

```text
What MUST be in code is no demand.
```

### List

It **MUST**:
- be one
- be two:
   - in two
   - parts
- be what it MUST be by itself

It SHALL be so:

1. once

and that is all that is REQUIRED.
"""


def test_demands_are_found() -> None:
    assert specifications.demands(TEXT) == [
        Demand("First", "MUST", 0),
        Demand("First", "SHOULD NOT", 0),
        Demand("First / List", "MUST", 3),
        Demand("First / List", "MUST", 0),
        Demand("First / List", "SHALL", 1),
        Demand("First / List", "REQUIRED", 0),
    ]
