"""Deciding for each task that is due: what starts, what is skipped, what is set aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from ..core import events
from ..core.damage import lost
from ..core.decide import Decision, decide
from ..core.declaration import Declaration
from ..core.overlap import ActiveRun
from ..core.unserved import with_causes
from ..models import ScheduledTask, TaskRun
from . import applying, overlaps, rows
from .coming import open_pauses
from .declared import StrangerError, declaration_of
from .faults import worded
from .guard import Locked, Member
from .starts import Started

ASIDE = timedelta(minutes=5)
"""How long a row that cannot be considered is left alone."""

_BEGINS_ANEW = (events.TaskOverridden, events.TaskMarkReset)


@dataclass(slots=True)
class Decided:
    """What was decided for due tasks, and taken into their rows.

    Args:
        started: the starts.
        unserved: history rows of occurrences that do not run, or not yet.
        events: what happened, in causal order.
        begun_anew: names of declared tasks that begin anew.
        rewrites: whether a task begins anew, declared or not.
        strangers: whether a row of a task was met that is not in the set.
    """

    started: list[Started] = field(default_factory=list)
    unserved: list[TaskRun] = field(default_factory=list)
    events: list[events.Event] = field(default_factory=list)
    begun_anew: set[str] = field(default_factory=set)
    rewrites: bool = False
    strangers: bool = False


def decide_each(
    held: Locked,
    member: Member,
    declarations: Mapping[str, Declaration],
    due: list[ScheduledTask],
    now: datetime,
) -> Decided:
    """Decide for due tasks, one after the other, and take what was decided into their rows.

    Args:
        held: the locked row of the deployment.
        member: who leads.
        declarations: its registration set by name.
        due: rows of the tasks.
        now: the instant of the tick.
    """
    decided = Decided()
    active = overlaps.active_runs(held, member, due)
    for row in due:
        considered = _considered(held, member, row, declarations, now, decided, active)
        if considered is None:
            continue
        declaration, decision = considered
        rows.take(row, decision)
        row.wake_at = overlaps.wake_of(row, active.get(row.name, ()), now)
        decided.events += decision.events
        decided.unserved += rows.unserved_rows(held.row, row, decision.events)
        decided.unserved += overlaps.waiting_rows(held.row, row, decision.events)
        if _begins_anew(decision):
            decided.rewrites = True
            decided.begun_anew.update({row.name} & declarations.keys())
        if decision.start is not None:
            decided.started.append(Started(row, decision.start, declaration))
    return decided


def _begins_anew(decision: Decision) -> bool:
    return any(isinstance(event, _BEGINS_ANEW) for event in decision.events)


def _considered(
    held: Locked,
    member: Member,
    row: ScheduledTask,
    declarations: Mapping[str, Declaration],
    now: datetime,
    decided: Decided,
    active: overlaps.Active,
) -> tuple[Declaration, Decision] | None:
    """Decide for one row; a row that cannot be decided for is set aside."""
    try:
        declaration = declaration_of(row, declarations)
        runs = active.get(row.name, [])
        return declaration, _decided(held, member, row, declaration, now, runs)
    except Exception as error:
        decided.strangers |= isinstance(error, StrangerError)
        reason = worded(error)
        decided.events.append(rows.set_aside(row, reason, now, ASIDE))
        return None


def _decided(
    held: Locked,
    member: Member,
    row: ScheduledTask,
    declaration: Declaration,
    now: datetime,
    active: Sequence[ActiveRun],
) -> Decision:
    identity = (row.cron, row.timezone, row.retry_delay)
    if lost(row.digest) or identity != declaration.terms.row()[:3]:
        pause = open_pauses(held, member, now).get(row.name)
        return applying.overridden(held, member, row, declaration, now, pause)
    state = rows.state_of(row)
    if state.waiting:
        state = state.but(waiting=sum(run.waiting for run in active))
    schedule, policy = declaration.schedule, declaration.overlap_policy
    catch_up = declaration.operating.catch_up
    decision = decide(state, schedule, declaration.retry, now, policy, active, catch_up)
    is_broken, led_since = bool(row.broken_reason), held.row.led_since
    told = with_causes(decision.events, is_broken=is_broken, led_since=led_since)
    decision = replace(decision, events=told)
    if any(isinstance(event, events.TaskMarkReset) for event in decision.events):
        # The names of occurrences may come a second time: not the same runs.
        row.epoch = held.next_epoch(member.using)
    return decision
