"""Stories out of seeds: the real engine among crashes, refusals, leaps and people.

A change has to pass 105 of them: 72 with SQLite and 33 with PostgreSQL. ``DDC_SEED`` plays others,
and the environment ``soak`` plays new ones for as long as it is told. To repeat one:
``DDC_SEEDS=theory:12 python -m pytest tests/simulation/test_seeds.py``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import django
import pytest
from django.conf import settings

from ..effort import SEED
from .proving import SEEDS, named, prove
from .steps import PROFILES, Profile

QUICK = 4
"""Seeds of each profile that are played in every env: in each of them others."""

_OTHERS = 1_000_000 * (SEED - 1)
_SLOW = {
    "sqlite3": range(1_000, 1_020),
    "postgresql": range(2_000, 2_007),
    "mysql": range(3_000, 3_027),
}
_NAMED = named(os.environ.get(SEEDS, ""))


def _further() -> Iterable[int]:
    """Return the seeds of this database: each plays stories that the other does not."""
    numbers = _SLOW[settings.DATABASES["default"]["ENGINE"].rpartition(".")[2]]
    return [_OTHERS + number for number in numbers]


def _quick() -> Iterable[int]:
    """Return the seeds of this Python, Django and database."""
    databases = ["sqlite3", "postgresql", "mysql"]
    database = settings.DATABASES["default"]["ENGINE"].rpartition(".")[2]
    pair = 100 * sys.version_info.minor + 10 * django.VERSION[0] + django.VERSION[1]
    first = _OTHERS + 10_000 + 100 * pair + 10 * databases.index(database)
    return range(first, first + QUICK)


def _seeds(numbers: Iterable[int]) -> list[tuple[Profile, int]]:
    return [(profile, seed) for profile in PROFILES for seed in numbers]


def _id(value: object) -> str:
    return str(value)


@pytest.mark.requirement(
    "004 Scope/1",
    "004 Domains & Data Types/1",
    "004 S1",
    "004 S2",
    "004 S3",
    "004 S5",
    "004 L1",
    "004 L2",
    "004 L3",
)
@pytest.mark.parametrize(("profile", "seed"), _NAMED or _seeds(_quick()), ids=_id)
def test_a_story_goes_as_it_must(stage: None, profile: Profile, seed: int) -> None:
    prove(profile, seed)


@pytest.mark.slow
@pytest.mark.skipif(bool(_NAMED), reason=f"{SEEDS} names what to play")
@pytest.mark.parametrize(("profile", "seed"), _seeds(_further()), ids=_id)
def test_a_further_story_goes_as_it_must(stage: None, profile: Profile, seed: int) -> None:
    prove(profile, seed)
