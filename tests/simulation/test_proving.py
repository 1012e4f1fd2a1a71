"""What is said of a story that goes wrong, and that stories are what their seeds make them."""

from __future__ import annotations

import pytest

from .generator import story
from .planted import FAULTS
from .player import play
from .proving import named, prove, shrunk
from .steps import PROFILES, Profile


@pytest.mark.parametrize("profile", PROFILES)
def test_a_seed_makes_the_same_story_each_time_and_it_prints(profile: Profile) -> None:
    for seed in range(20):
        made = story(profile, seed)
        assert made == story(profile, seed) != story(profile, seed + 1)
        assert all(repr(step) in str(made) for step in made.steps)


def test_seeds_are_named_by_profile_and_number() -> None:
    assert named("") == []
    assert named("theory:12, world:7") == [("theory", 12), ("world", 7)]
    for text in ("12", "theory:x", "other:1"):
        with pytest.raises(ValueError, match="write theory:12 or world:12"):
            named(text)


@pytest.mark.slow
def test_a_story_that_fails_says_how_to_repeat_it_and_how_little_it_takes(
    stage: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    FAULTS["retry before its time"].plant(monkeypatch)
    with pytest.raises(pytest.fail.Exception) as failed:
        prove("theory", 3)
    said = str(failed.value)
    assert "DDC_SEEDS=theory:3 python -m pytest tests/simulation/test_seeds.py" in said
    small = shrunk(made := story("theory", 3), play(made).rules)
    assert str(small) in said
    assert len(small.steps) <= 4 < len(made.steps)
