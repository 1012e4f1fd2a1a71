"""Making a failing story small, by leaving steps out and making those left simpler."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .player import play
from .steps import Step, Story

_MOST_PLAYS = 600


def shrunk(story: Story, rules: set[str], most_plays: int = _MOST_PLAYS) -> Story:
    """Give a small story in which one of the same rules is broken.

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
    """Give steps that say less."""
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
