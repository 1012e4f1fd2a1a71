"""What the theory says of a story, and what it is not asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django_declarative_cron import theory
from django_declarative_cron.models import TaskRun
from django_declarative_cron.store.trace_reading import read
from django_declarative_cron.testing import Simulation

from .played import Wrong
from .steps import Step, Story
from .task_trace import task_trace

_ACTS = {"pause", "resume", "run", "clear"}
_OBLIGATIONS = {"S1", "S2", "L1"}
_DEATH = timedelta(seconds=15)
"""After how long a silent process is dead, in stories in which none hangs."""


def judged(sim: Simulation, story: Story) -> Iterator[Wrong]:
    """Let the theory judge a story that was played; that of several instances task by task."""
    set_back = "hold" if any(map(_steps_back, story.steps)) else "refuse"
    for name in sim.task_names if len(sim) > 1 else [None]:
        trace = sim.trace() if name is None else task_trace(sim, name)
        for found in theory.check(trace, set_back=set_back):
            task = found.task or name
            if found.owner != "inconclusive" and found.axiom not in _unasked(story, task):
                yield Wrong(
                    found.axiom, f"{task} at {found.at} ({found.owner}): {found.explanation}"
                )


def judged_rows(sim: Simulation, story: Story) -> Iterator[Wrong]:
    """Let the theory judge what ``cron verify`` reads; living instances have just been heard of."""
    told = read(
        "default",
        sim.deployment,
        lease=_DEATH if story.lease is None else timedelta(seconds=story.lease),
        until=sim.now,
        database_time=sim.clock.database_time(),
    )
    if told is None:
        return
    kinds, is_set_back = {step[0] for step in story.steps}, any(map(_steps_back, story.steps))
    # What was refused is in no row: that a process was suspended, or that it left.
    unasked = {"L1", "L3"} if kinds & {"crash at", "refuse", "hang"} else set()
    unasked |= {"L3"} if is_set_back else set()
    verdict = theory.judge(told.records(), pulses="made", set_back="hold")
    for found in verdict.violations:
        if found.axiom not in unasked:
            yield Wrong(f"stored {found.axiom}", f"{found.task} at {found.at}: {found.explanation}")
    aside = told.set_aside
    started = TaskRun.objects.exclude(started_at=None).count()
    if (told.runs, verdict.starts) != (started, started - aside.total()):
        text = f"of {started} runs {told.runs} are told, {verdict.starts} judged, {aside} not"
        yield Wrong("history is whole", text)
    people_act = bool(kinds & _ACTS) or story.profile == "settings"
    if (aside["clock"] and not is_set_back) or (aside["people"] and not people_act):
        yield Wrong("history is whole", f"{aside} runs are not judged")


def _unasked(story: Story, task: str | None) -> set[str]:
    """Give the axioms that have no meaning after what happened in a story.

    To the theory nothing that a person asks for is an obligation, and what a person or the
    settings forbid is one. An instance that hangs is gone without a crash: others have its
    obligations, and its runs end late. Where a clock was set back, what was frozen
    comes again.
    """
    unasked: set[str] = set()
    for step in story.steps:
        if (step[0] in _ACTS and step[1] == task) or _disables(step, task):
            unasked |= _OBLIGATIONS
        elif step[0] == "hang":
            unasked |= _OBLIGATIONS | {"S4", "EA6", "L3"}
        elif _steps_back(step):
            unasked |= _OBLIGATIONS | {"EA2"}
    return unasked


def _disables(step: Step, task: str | None) -> bool:
    sets = step[-1] if step[0] in ("deploy", "init") else ()
    return any(
        name == task and not keys.get("enabled", True)
        for name, _, _, _, *rest in sets
        for keys in rest
    )


def _steps_back(step: Step) -> bool:
    return step[0] == "jump" and step[1] < 0
