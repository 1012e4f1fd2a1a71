"""Playing seeds, and what is said of one that fails: how to repeat it, and how little it takes."""

from __future__ import annotations

import pytest

from .generator import story
from .player import Played, play
from .shrinking import shrunk
from .steps import PROFILES, Profile, Story

SEEDS = "DDC_SEEDS"
"""Names seeds to play instead of the usual ones: ``theory:12,world:7``."""


def prove(profile: Profile, seed: int) -> Played:
    """Play the story of a seed; where something is wrong, fail and say all there is to say.

    Args:
        profile: of the story.
        seed: any number.

    Returns:
        what came of it.
    """
    made = story(profile, seed)
    played = play(made)
    if played.wrong:
        pytest.fail(report(f"{profile}:{seed}", made, played), pytrace=False)
    return played


def report(seed: str, made: Story, played: Played) -> str:
    """Say what is wrong, how to repeat it, and the smallest story in which it is wrong."""
    small = shrunk(made, played.rules)
    found = "\n".join(str(wrong) for wrong in play(small).wrong)
    return (
        f"Seed {seed} breaks {', '.join(sorted(played.rules))}. To repeat it:\n"
        f"    {SEEDS}={seed} python -m pytest tests/simulation/test_seeds.py\n"
        f"Its {len(made.steps)} steps shrink to {len(small.steps)}, for play():\n{small}\n{found}"
    )


def named(text: str) -> list[tuple[Profile, int]]:
    """Read the seeds that somebody names."""
    found: list[tuple[Profile, int]] = []
    for each in filter(None, text.replace(" ", "").split(",")):
        profile, _, number = each.partition(":")
        known = [each for each in PROFILES if each == profile]
        if not known or not number.isdigit():
            raise ValueError(f"{SEEDS} has {each!r}; write theory:12 or world:12")
        found.append((known[0], int(number)))
    return found
