"""What the theory is told of a story, what it says of it, and what it is not asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django_declarative_cron import theory
from django_declarative_cron.models import TaskRun
from django_declarative_cron.store.trace_reading import read
from django_declarative_cron.testing import Record, Simulation
from django_declarative_cron.testing.trace import Entry

from .steps import Step, Story, Wrong

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
    started = TaskRun.objects.exclude(started_at=None).count()
    if told is None:
        if started:
            yield Wrong("history is whole", f"nothing is told of {started} runs")
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
    if (told.runs, verdict.starts) != (started, started - aside.total()):
        text = f"of {started} runs {told.runs} are told, {verdict.starts} judged, {aside} not"
        yield Wrong("history is whole", text)
    people_act = bool(kinds & _ACTS) or story.profile == "settings"
    may_be_lost = is_set_back or bool(kinds & {"crash at", "refuse"})
    allowed = {"clock": is_set_back, "people": people_act, "rows": may_be_lost}
    if any(not allowed.get(cause) for cause in +aside):
        yield Wrong("history is whole", f"{aside} runs are not judged")


def _unasked(story: Story, task: str | None) -> set[str]:
    """Return the axioms that have no meaning after what happened in a story.

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


def task_trace(sim: Simulation, task: str) -> list[Record]:
    """The trace of one task in a simulation of several instances; the checker knows one scheduler.

    In the theory a crash ends every run and a stop waits for all of them, but an instance that
    ends affects only its own runs. So a trace of several instances is built for one task at a
    time: at most one instance runs it, and each event of an instance concerns the task either
    completely or not at all.

    =======================================  =====================================================
    Event of an instance                     Events of the task
    =======================================  =====================================================
    initialises, or goes back to its own     ``IS`` and ``IEs``: the deployment was initialised
    set as no other holds the active one
    stops, the last to hold the active set   ``SS``, and ``SE`` once its own run has ended: runs of
                                             other tasks are ignored, so L3 does not apply
    stops otherwise                          nothing: the others go on
    crashes while it runs the task           ``Crash``; where others hold the active set, then
                                             immediately ``IS`` and ``IEs``: they take over, and L1
                                             measures the time that they need
    crashes, the last to hold the set        ``Crash``
    crashes otherwise                        nothing: the next leader starts due tasks within L1
    stops or crashes, the last to hold the   nothing before that run has ended: no run may end in
    set, while another one runs the task     the trace, and nothing is pending while it goes on
    =======================================  =====================================================
    """
    view = _View(task)
    for entry in sim.actions():
        view.follow(entry)
    return view.told


class _View:
    def __init__(self, task: str) -> None:
        self.told: list[Record] = []
        self._task = task
        self._active: list[Record] = []
        self._held: dict[int | None, list[Record]] = {}
        self._asked: dict[int | None, Record] = {}
        self._stopping: set[int | None] = set()
        self._runner: int | None = None
        self._is_active = False

    def follow(self, entry: Entry) -> None:
        """Add what an entry of the whole trace means for the task."""
        kind, instance = entry.record["event"], entry.instance
        record = self._of_the_task(entry.record)
        match kind:
            case "IS" | "IEs" | "IEf":
                self._initialization(kind, record, entry)
            case "SS":
                self._stop(record, instance)
            case "SE":
                self._stopped(record["at"], instance)
            case "Crash":
                self._crash(record, instance)
            case "RS" | "REs" | "REf":
                self._run(kind, record, instance)
            case _:
                self.told.append(record)

    def _of_the_task(self, record: Record) -> Record:
        if "registrations" not in record:
            return record
        mine = [each for each in record["registrations"] if each["name"] == self._task]
        return {**record, "registrations": mine}

    def _initialization(self, kind: str, record: Record, entry: Entry) -> None:
        self.told.append(record)
        if kind == "IS":
            self._asked[entry.instance] = record
            return
        self._asked.pop(entry.instance, None)
        if kind == "IEs":
            self._active = entry.record["registrations"]
            self._held[entry.instance] = self._active
            self._is_active = True

    def _run(self, kind: str, record: Record, instance: int | None) -> None:
        if record["task"] == self._task:
            self._runner = instance if kind == "RS" else None
            self.told.append(record)
            if kind != "RS":
                self._stopped(record["at"], instance)
                self._end_activity(record["at"], instance)

    def _stop(self, record: Record, instance: int | None) -> None:
        self._held.pop(instance, None)
        if not self._runs_elsewhere_than(instance):
            self._end_activity(record["at"], instance)

    def _end_activity(self, at: datetime, instance: int | None) -> None:
        """Add a stop, as no instance holds the active set any more."""
        if self._is_held or not self._is_active:
            return
        self._is_active = False
        self._stopping.add(instance)
        self.told.append({"at": at, "event": "SS"})
        if self._runner is None:
            self._stopped(at, instance)

    def _stopped(self, at: datetime, instance: int | None) -> None:
        if instance in self._stopping:
            self._stopping.discard(instance)
            self.told.append({"at": at, "event": "SE"})

    def _crash(self, record: Record, instance: int | None) -> None:
        self._held.pop(instance, None)
        self._stopping.discard(instance)
        asked = self._asked.pop(instance, None)
        if self._runs_elsewhere_than(instance) or (self._is_held and self._runner is None):
            self._unsay(asked)
            return
        self._runner = None
        self._is_active = self._is_held
        self.told.append(record)
        if self._is_held:
            self._take_over(record["at"])

    def _take_over(self, at: datetime) -> None:
        listed = self._of_the_task({"registrations": self._active})
        self.told += [{"at": at, "event": event, **listed} for event in ("IS", "IEs")]

    @property
    def _is_held(self) -> bool:
        return self._active in self._held.values()

    def _runs_elsewhere_than(self, instance: int | None) -> bool:
        return self._runner not in (None, instance)

    def _unsay(self, asked: Record | None) -> None:
        """Remove the begin of an action that a process did not survive."""
        self.told = [record for record in self.told if record is not asked]
