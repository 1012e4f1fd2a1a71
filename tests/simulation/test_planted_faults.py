"""A judge that can fail: every planted fault is objected to by whom it has to be.

Which stories catch which fault is recorded, so that a few of them show it. A crash strikes the
n-th statement, and databases are not asked in equally many: the record is made and holds on
SQLite. After a change to the generator, or a new fault, record it anew:
``DDC_RECORD_CATCHES=1 python -m pytest tests/simulation/test_planted_faults.py``.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from .generator import story
from .planted import FAULTS, Planted
from .player import play
from .proving import named
from .steps import Profile, Story

RECORDED = Path(__file__).with_name("catches.json")
STORIES = 80
"""How many stories are played for each fault to make the record."""

_REFUSING = "refusing"
_PROFILES: tuple[Profile, ...] = ("theory", "world")


def _recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def _numbered() -> Iterator[tuple[Profile, int]]:
    for number in range(STORIES):
        yield _PROFILES[number % 2], number // 2


def _refusing() -> Iterator[Story]:
    """Return stories in which one of the writes around a start and its end is refused."""
    task = ("a", "* * * * *", 30, "UTC")
    for number in range(1, 13):
        refused = ("refuse", number, "writes", 1)
        steps = (("job", "a", (("fail", 0),)), ("deploy", (task,)), refused, ("jump", 61))
        yield Story("theory", "2024-01-01T10:00:00", 1, None, (*steps, ("advance", 180)))


def _told(first: str) -> Story:
    """Return a story by the name under which it is recorded."""
    kind, _, number = first.partition(":")
    if kind == _REFUSING:
        return next(islice(_refusing(), int(number), None))
    [seed] = named(first)
    return story(*seed)


@cache
def _objecting_without_a_fault(first: str) -> frozenset[str]:
    return frozenset(_objecting(_told(first)))


def _objecting(made: Story) -> set[str]:
    return play(made, to_the_end=True).rules


@pytest.mark.requirement("004 Scope/1")
@pytest.mark.slow
@pytest.mark.skipif(connection.vendor != "sqlite", reason="on SQLite it was recorded by what")
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(stage: None, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    planted = FAULTS[name]
    catching = list(dict.fromkeys(_recorded()[name]["first"].values()))
    innocent = set().union(*map(_objecting_without_a_fault, catching))
    planted.plant(monkeypatch)
    recorded = map(_told, catching)
    # With another number of statements in the engine it may take another story.
    others = (story(*seed) for seed in _numbered())
    objects = (planted.rules & _objecting(each) for each in chain(recorded, _refusing(), others))
    assert (innocent, any(objects)) == (set(), True)


def test_there_are_enough_faults_and_a_record_of_each() -> None:
    assert len(FAULTS) >= 15
    recorded = _recorded()
    assert recorded.keys() == FAULTS.keys()
    for name, planted in FAULTS.items():
        assert recorded[name]["first"].keys() == planted.rules
        are_by_chance = any(_REFUSING not in first for first in recorded[name]["first"].values())
        assert (recorded[name]["caught"] > 0) is are_by_chance


@pytest.mark.skipif("DDC_RECORD_CATCHES" not in os.environ, reason="DDC_RECORD_CATCHES asks for it")
def test_record_which_stories_catch_what(stage: None) -> None:
    made = {name: _catches(planted) for name, planted in FAULTS.items()}
    RECORDED.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")


def _catches(planted: Planted) -> dict[str, Any]:
    caught: Counter[str] = Counter()
    first: dict[str, str] = {}
    with pytest.MonkeyPatch.context() as patch:
        planted.plant(patch)
        for profile, seed in _numbered():
            rules = _objecting(story(profile, seed))
            caught["any"] += bool(rules & planted.rules)
            for rule in sorted(rules & planted.rules):
                first.setdefault(rule, f"{profile}:{seed}")
        for number, made in enumerate(_refusing()):
            for rule in sorted(_objecting(made) & planted.rules):
                first.setdefault(rule, f"{_REFUSING}:{number}")
    return {"caught": caught["any"], "first": dict(sorted(first.items()))}
