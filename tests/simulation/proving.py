"""Playing seeds, and what is said of one that fails: how to repeat it, and how little it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from .generator import story
from .player import play
from .steps import PROFILES, Played, Profile, Step, Story

SEEDS = "DDC_SEEDS"
"""Names seeds to play instead of the usual ones: ``theory:12,world:7``."""


def prove(profile: Profile, seed: int) -> Played:
    """Play the story of a seed; where something is wrong, fail and say all there is to say."""
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


# --- making a story small, by leaving steps out and making those left simpler ---

_MOST_PLAYS = 600


def shrunk(story: Story, rules: set[str], most_plays: int = _MOST_PLAYS) -> Story:
    """Return a small story in which one of the same rules is broken.

    A story that breaks another rule only is another find.
    """
    plays = [0]

    def fails(candidate: Story) -> bool:
        plays[0] += 1
        return plays[0] <= most_plays and bool(play(candidate).rules & rules)

    before: Story | None = None
    while story != before:
        before = story
        story = _with_fewer_steps(story, fails)
        for simpler in (_with_fewer_instances, _with_simpler_steps):
            story = simpler(story, fails)
    return story


def _with_fewer_steps(story: Story, fails: Callable[[Story], bool]) -> Story:
    """Leave out runs of steps, long ones first (delta debugging)."""
    size = max(len(story.steps) // 2, 1)
    while size:
        begin = 0
        while begin < len(story.steps):
            candidate = story.having(story.steps[:begin] + story.steps[begin + size :])
            if fails(candidate):
                story = candidate
            else:
                begin += size
        size //= 2
    return story


def _with_fewer_instances(story: Story, fails: Callable[[Story], bool]) -> Story:
    for instances in range(1, story.instances):
        candidate = Story(story.profile, story.start, instances, story.lease, story.steps)
        if fails(candidate):
            return candidate
    return story


def _with_simpler_steps(story: Story, fails: Callable[[Story], bool]) -> Story:
    for index in range(len(story.steps)):
        for step in _simpler(story.steps[index]):
            candidate = story.having((*story.steps[:index], step, *story.steps[index + 1 :]))
            if fails(candidate):
                story = candidate
                break
    return story


def _simpler(step: Step) -> Iterator[Step]:
    """Return steps that say less."""
    match step:
        case ("deploy", registrations) if len(registrations) > 1:
            for left_out in range(len(registrations)):
                yield ("deploy", registrations[:left_out] + registrations[left_out + 1 :])
        case ("init", instance, registrations):
            yield ("deploy", registrations)
            for left_out in range(len(registrations)):
                yield ("init", instance, registrations[:left_out] + registrations[left_out + 1 :])
        case ("job", name, plan) if len(plan) > 1:
            for left_out in range(len(plan)):
                yield ("job", name, plan[:left_out] + plan[left_out + 1 :])
        case ("refuse", statement, of, times) if times > 1:
            yield ("refuse", statement, of, 1)
