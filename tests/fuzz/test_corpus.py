"""Inputs that were interesting once, and a few that nobody has seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .targets import TARGETS, Target

CORPUS = Path(__file__).parent / "corpus"
KEPT = sorted(CORPUS.glob("*/*"))


def test_every_target_has_a_corpus() -> None:
    assert {path.parent.name for path in KEPT} == set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_what_was_interesting_once_is_stood(name: str) -> None:
    kept = [path for path in KEPT if path.parent.name == name]
    assert len(kept) >= 10
    for path in kept:
        try:
            TARGETS[name](path.read_bytes())
        except BaseException as error:
            error.add_note(f"the input is {path.relative_to(CORPUS)}")
            raise


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@given(data=st.binary(max_size=60))
@settings(max_examples=30, deadline=None)
def test_any_bytes_are_stood(target: Target, data: bytes) -> None:
    target(data)
