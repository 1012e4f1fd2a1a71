"""What a simulated story is made of, and what came of it: plain values, which print and shrink.

======================================== =========================================================
step                                     what happens
======================================== =========================================================
``("deploy", registrations)``            every instance initialises the set, one by one
``("init", instance, registrations)``    one instance initialises it
``("mistake", instance, registrations)`` it is to initialise the set with one more that is wrong
``("advance", seconds)``                 time passes
``("jump", seconds)``                    the clock leaps; back where negative
``("stop", instance)``                   one instance stops; the clock runs to its last end
``("crash", instance)``                  its process is gone
``("hang", instance)``                   it lives and does nothing, not even heartbeats
``("recover", instance)``                it goes on as if nothing had been
``("crash at", n, of)``                  the process that makes the n-th statement is gone
``("refuse", n, of, times)``             the database refuses from the n-th statement on
``("job", name, ((outcome, s), ...))``   how the runs of a task go, in turn and repeated
``("pause", name, seconds or None)``     a person pauses it, with or without an end
``("resume", name)``                     a person resumes it
``("run", name)``                        a person asks for a run
``("clear", name)``                      a person clears its retry
======================================== =========================================================

``of`` is ``all`` or ``writes``, which counts only those that write.
A registration is ``(name, cron, retry delay in seconds, zone)``, with a dict of further keys
as a fifth value where it has any. Every step can be left out of a story: what makes no sense
any more does nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal

Step = tuple[Any, ...]
Profile = Literal["theory", "world", "settings"]
PROFILES: tuple[Profile, ...] = ("theory", "world", "settings")


@dataclass(frozen=True, slots=True)
class Story:
    """One simulated story.

    Args:
        profile: ``theory`` keeps to what the theory speaks of and is judged by it wholly;
            ``world`` has people's acts, steps of the clock back and hanging processes too, of
            which the theory is not asked everything; ``settings`` has all that, tasks that are
            disabled, and sets with a mistake.
        start: ISO 8601.
        instances: number of schedulers.
        lease: in seconds; ``None`` where only a crash ends one.
        steps: what happens.
    """

    profile: Profile
    start: str
    instances: int
    lease: int | None
    steps: tuple[Step, ...]

    def having(self, steps: tuple[Step, ...]) -> Story:
        return replace(self, steps=steps)

    def __str__(self) -> str:
        head = f"profile={self.profile!r}, start={self.start!r}"
        lines = "".join(f"        {step!r},\n" for step in self.steps)
        return (
            f"Story(\n    {head}, instances={self.instances}, lease={self.lease},\n"
            f"    steps=(\n{lines}    ),\n)"
        )


@dataclass(frozen=True, slots=True)
class Wrong:
    """A broken axiom or invariant; ``step`` is ``None`` where the whole trace was judged."""

    rule: str
    text: str
    step: int | None = None

    def __str__(self) -> str:
        where = "" if self.step is None else f" (after step {self.step})"
        return f"{self.rule}{where}: {self.text}"


@dataclass(slots=True)
class Played:
    """What came of a story: what is wrong, calls of callbacks, virtual time."""

    wrong: list[Wrong] = field(default_factory=list)
    starts: int = 0
    passed: timedelta = timedelta(0)

    @property
    def rules(self) -> set[str]:
        return {each.rule for each in self.wrong}
