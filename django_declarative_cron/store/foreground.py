"""Starting one task now for a person, in the person's own process."""

from __future__ import annotations

from dataclasses import dataclass

from ..core import events
from ..core.decide import Story, settle, start_now
from ..core.declarations.declaration import Declaration
from ..core.decoding import StoredTerms
from ..exceptions import TaskTryDeserializeError
from ..models import ScheduledTask, TaskOverride, TaskRun
from . import database, liveness, operator_actions, outbox, rows
from .database import naming_what_is_held
from .guard import Locked, Member, locked
from .liveness import Process
from .operator_actions import Act
from .starts import Claim, Started, write_starts


class NotRegisteredError(LookupError):
    """Tell that a task has no row: no scheduler has registered it."""


class UnreadableRowError(ValueError):
    """Tell that a task's row is damaged."""


class AlreadyRunningError(RuntimeError):
    """Tell that a task's run is in progress.

    Args:
        run: the row of that run, its instance with it.
    """

    def __init__(self, run: TaskRun) -> None:
        super().__init__(f"run {run.pk} of {run.task_name!r} is in progress")
        self.run = run


@dataclass(frozen=True, slots=True)
class Start:
    """A committed start.

    Args:
        claim: what must now be called.
        events: what happened, in causal order.
    """

    claim: Claim
    events: tuple[events.Event, ...]


@database.again_after_conflict
def start(member: Member, process: Process, declaration: Declaration, act: Act) -> Start:
    """Start a task now, beside its schedule; the instance need not lead, and comes with it.

    Raises:
        NotRegisteredError: the task has no row.
        UnreadableRowError: its row is damaged.
        AlreadyRunningError: its run is in progress, here or elsewhere.
        django.db.Error: nothing was committed, nothing may be called.
    """
    with naming_what_is_held(member.using, member.deployment), locked(member) as held:
        if held is None:
            raise NotRegisteredError(declaration.name)
        row = free_row(held, member, declaration.name)
        liveness.register(held, member, process)
        return _start(held, member, row, declaration, act)


def free_row(held: Locked, member: Member, name: str) -> ScheduledTask:
    """Return the row of a task that no run of its own keeps from starting.

    Raises:
        NotRegisteredError: the task has no row.
        AlreadyRunningError: its run is in progress.
    """
    tasks = ScheduledTask.objects.using(member.using).filter(scheduler=held.row, name=name)
    row = database.current(member.using, tasks).first()
    if row is None:
        raise NotRegisteredError(name)
    runs = TaskRun.objects.using(member.using).filter(scheduler=held.row, running_slot=name)
    busy = database.current(member.using, runs).first()
    if busy is not None:
        raise AlreadyRunningError(busy)
    return row


def readable_terms(row: ScheduledTask) -> Declaration | StoredTerms:
    """Return when and how a task runs.

    Raises:
        UnreadableRowError: its row is damaged.
    """
    try:
        return rows.terms_of(row)
    except TaskTryDeserializeError as damage:
        raise UnreadableRowError(rows.reason_of(damage)) from damage


def _start(
    held: Locked, member: Member, row: ScheduledTask, declaration: Declaration, act: Act
) -> Start:
    state, terms = rows.state_of(row), readable_terms(row)
    asked = events.TaskRunRequested(
        at=act.at, task_name=state.name, author=act.author, note=act.note
    )
    policy = terms.overlap_policy
    decision = settle(start_now(Story(state).then(asked), act.at), terms.schedule, act.at, policy)
    assert decision.start is not None
    rows.take(row, decision)
    # The start closes the request again: the audit shows who asked, and when it was answered.
    operator_actions.audit(held, member.using, [row], act, TaskOverride.Kind.RUN)
    unserved = rows.unserved_rows(held.row, row, decision.events)
    started = Started(row, decision.start, declaration, policy)
    [claim] = write_starts(held, member, [started], unserved)
    database.upsert(member.using, [row], rows.STATE_FIELDS)
    told = outbox.tell(held, member.using, decision.events, [row], starts=[claim.started])
    return Start(claim, tuple(told))
