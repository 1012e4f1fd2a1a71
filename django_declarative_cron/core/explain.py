"""Explain why a task runs or does not run, from its stored data around an instant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from ..cron import next_transitions
from ..cron.zones import in_zone
from .events import LATE
from .next_run import next_start
from .overlap import DEFERRING, POLICY_OF_SHORT_FORM, Policy
from .schedule import Schedule
from .state import TaskState


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the history.

    Args:
        key: its primary key.
        scheduled_for: its occurrence, the last of a range.
        scheduled_from: the first of a range, otherwise ``None``.
        started_at: ``None`` if nothing ran.
        finished_at: ``None`` while it runs.
        outcome: how it ended.
        reason: of the start, or of the missing run.
        attempt: its number.
        error: one line.
        blocked_by: the blocking run, if there was one.
        is_offered: an external worker may fetch it.
        calendar: the calendar that excluded it, if one did.
        author: the operator who skipped it, if one did.
        note: of the operator.
        gone_since: the last heartbeat of its process, if that is dead.
    """

    key: int
    scheduled_for: datetime
    scheduled_from: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    outcome: str
    reason: str
    attempt: int = 1
    error: str = ""
    blocked_by: int | None = None
    is_offered: bool = False
    calendar: str = ""
    author: str = ""
    note: str = ""
    gone_since: datetime | None = None

    def covers(self, occurrence: datetime) -> bool:
        """Return whether an occurrence is among those the row accounts for."""
        return (self.scheduled_from or self.scheduled_for) <= occurrence <= self.scheduled_for

    def was_running(self, instant: datetime) -> bool:
        """Return whether it had started and not ended."""
        if self.started_at is None or self.started_at > instant:
            return False
        return self.finished_at is None or self.finished_at >= instant


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause by a person, or by the scheduler itself.

    Args:
        since: when it began.
        until: when it ended or will end, ``None`` where only a person ends it.
        author: the operator.
        note: of the operator.
        reason: why the scheduler paused it itself; empty for a person's pause.
    """

    since: datetime
    until: datetime | None
    author: str
    note: str = ""
    reason: str = ""

    def covers(self, instant: datetime) -> bool:
        """Return whether an instant lies under it."""
        return self.since <= instant and (self.until is None or instant < self.until)


@dataclass(frozen=True, slots=True)
class Skip:
    """An occurrence that a person skips.

    Args:
        at: the occurrence.
        author: the person.
        note: why.
    """

    at: datetime
    author: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """The stored data of one task.

    Args:
        now: the instant of asking.
        state: as of the last event.
        schedule: ``None`` if its row cannot be decoded.
        problem: why it is broken, or empty.
        enabled: ``False`` if the declaration disables it.
        is_attended: a scheduler sent a heartbeat recently.
        rows: of the history around the instant, oldest first.
        pauses: around the instant, the newest first.
        known_before: it ran before it was registered as it is now.
        history_from: from when on its history is complete.
        policy: the overlap policy.
        skip: the pending skip of an operator, if there is one.
    """

    now: datetime
    state: TaskState
    schedule: Schedule | None
    problem: str = ""
    enabled: bool = True
    is_attended: bool = True
    rows: tuple[Row, ...] = ()
    pauses: tuple[Pause, ...] = ()
    known_before: bool = False
    history_from: datetime | None = None
    policy: Policy = POLICY_OF_SHORT_FORM
    skip: Skip | None = None


_MINUTE = timedelta(minutes=1)
_WRONG = ("failed", "timed_out", "interrupted")
_DAY = timedelta(days=1)


class Cause(StrEnum):
    """Every possible answer."""

    BROKEN = "broken"
    DISABLED = "disabled"
    PAUSED = "paused"
    RUNNING = "running"
    PROCESS_GONE = "process_gone"
    WAITS_FOR_A_WORKER = "waits_for_a_worker"
    WAITS = "waits"
    RAN = "ran"
    RAN_LATE = "ran_late"
    WILL_RUN = "will_run"
    REQUESTED = "requested"
    NOT_DUE = "not_due"
    NEVER_DUE = "never_due"
    RETRY_PENDING = "retry_pending"
    RETRY_PREEMPTED = "retry_preempted"
    NEVER_RAN = "never_ran"
    LAST_RAN = "last_ran"
    GAP = "gap"
    GAP_AHEAD = "gap_ahead"
    FOLD = "fold"
    OVERLAP = "overlap"
    COALESCED = "coalesced"
    NO_SCHEDULER = "no_scheduler"
    WAS_BROKEN = "was_broken"
    HELD_UP = "held_up"
    NO_LEADER = "no_leader"
    LATE = "late"
    NOT_REGISTERED = "not_registered"
    OVERRIDDEN = "overridden"
    FORGOTTEN = "forgotten"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    EXCLUDED = "excluded"
    TOO_LATE = "too_late"
    SKIPPED_ONCE = "skipped_once"
    PAUSED_BY_FAILURES = "paused_by_failures"
    REMOVED = "removed"


_MISSED = {
    "no_scheduler": Cause.NO_SCHEDULER,
    "broken": Cause.WAS_BROKEN,
    "held_up": Cause.HELD_UP,
    "too_late": Cause.TOO_LATE,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer.

    Args:
        cause: its kind.
        at: the instant it is about: the occurrence, where there is one.
        row: the run that ran or blocked.
        pause: the pause it lay under.
        until: when it ends, or when the task runs next.
        previous: the occurrence before.
        text: the problem, a reason, a lost local time, or the name of a calendar.
        skip: the occurrence before ``until`` that a person skips, if there is one.
    """

    cause: Cause
    at: datetime
    row: Row | None = None
    pause: Pause | None = None
    until: datetime | None = None
    previous: datetime | None = None
    text: str = ""
    skip: Skip | None = None


def explain_facts(facts: Facts, at: datetime | None = None) -> Answer:
    """Return why a task does or does not run, or did or did not at an instant."""
    if at is None:
        return _present(facts)
    return _past(facts, at) if at <= facts.now else _future(facts, at)


def _present(facts: Facts) -> Answer:
    now, state = facts.now, facts.state
    if state.running:
        return _occupied(facts, now)
    blocked = _blocked(facts, now)
    if blocked is not None or facts.schedule is None:
        return blocked or Answer(Cause.BROKEN, now, text=facts.problem)
    due = [state.pending_retry_until, state.run_requested_at, state.boot_at]
    following = facts.schedule.next_after(state.mark)
    owed = min((each for each in (*due, following) if each is not None), default=None)
    if owed is not None and (now - owed > LATE or state.orphaned):
        return _unserved(facts, owed)
    if state.run_requested_at is not None:
        return Answer(Cause.REQUESTED, state.run_requested_at)
    return _idle(facts, now, following)


def _idle(facts: Facts, now: datetime, following: datetime | None) -> Answer:
    """Return how the last run ended, and when the next one starts."""
    state = facts.state
    start = next_start(state, following, facts.policy)
    until, last = None if start is None else start.at, _last_run(facts, now)
    if state.pending_retry_until is not None and start is not None:
        is_retry = start.reason == "retry"
        cause = Cause.RETRY_PENDING if is_retry else Cause.RETRY_PREEMPTED
        return Answer(cause, now, row=last, until=until, skip=facts.skip)
    if until is None:
        return Answer(Cause.NEVER_DUE, now, row=last)
    if last is not None:
        return Answer(Cause.LAST_RAN, now, row=last, until=until, skip=facts.skip)
    if state.run_count == 0:
        return Answer(Cause.NEVER_RAN, now, until=until, skip=facts.skip)
    return Answer(Cause.NOT_DUE, now, until=until, skip=facts.skip)


def _occupied(facts: Facts, now: datetime) -> Answer:
    running = _running(facts, now)
    if running is not None and running.gone_since is not None:
        return Answer(Cause.PROCESS_GONE, now, row=running, until=running.gone_since)
    if running is None:
        waiting = [row for row in facts.rows if row.is_offered]
        if waiting:
            return Answer(Cause.WAITS_FOR_A_WORKER, waiting[0].scheduled_for, row=waiting[0])
    return Answer(Cause.RUNNING, now, row=running)


def _blocked(facts: Facts, at: datetime) -> Answer | None:
    """Return the reason why a task does not run at all, or ``None``."""
    if facts.problem:
        return Answer(Cause.BROKEN, at, text=facts.problem)
    if not facts.enabled:
        return Answer(Cause.DISABLED, at)
    if facts.state.paused_since is None or facts.state.paused_since > at:
        return None
    if facts.state.paused_until is not None and facts.state.paused_until <= at:
        return None
    return _paused(facts, at)


def _paused(facts: Facts, at: datetime) -> Answer:
    pause = next((each for each in facts.pauses if each.covers(at)), None)
    until = facts.state.paused_until if pause is None else pause.until
    by_itself = pause is not None and bool(pause.reason)
    cause = Cause.PAUSED_BY_FAILURES if by_itself else Cause.PAUSED
    return Answer(cause, at, pause=pause, until=until)


def _unserved(facts: Facts, owed: datetime) -> Answer:
    return Answer(Cause.LATE if facts.is_attended else Cause.NO_LEADER, owed)


def _past(facts: Facts, at: datetime) -> Answer:
    ran = _ran_at(facts, at)
    if ran is not None:
        return ran
    if facts.schedule is None:
        return Answer(Cause.BROKEN, at, text=facts.problem)
    occurrence = facts.schedule.named_by(at)
    if occurrence is None:
        return _no_occurrence(facts, facts.schedule, at)
    for row in facts.rows:
        if row.covers(occurrence):
            return _explained_by(facts, row, occurrence)
    return _unaccounted(facts, occurrence)


def _ran_at(facts: Facts, at: datetime) -> Answer | None:
    minute = at.replace(second=0, microsecond=0)
    for row in facts.rows:
        if row.started_at is not None and minute <= row.started_at < minute + _MINUTE:
            if row.gone_since is not None:
                return Answer(Cause.PROCESS_GONE, row.scheduled_for, row=row, until=row.gone_since)
            cause = Cause.RUNNING if row.finished_at is None else Cause.RAN
            return Answer(cause, row.scheduled_for, row=row)
    return None


def _explained_by(facts: Facts, row: Row, occurrence: datetime) -> Answer:
    """Return the explanation that a history row has of an occurrence."""
    if row.started_at is not None:
        return Answer(Cause.RAN_LATE, occurrence, row=row, until=row.started_at)
    if row.outcome == "waiting":
        cause = Cause.WAITS_FOR_A_WORKER if row.is_offered else Cause.WAITS
        return Answer(cause, occurrence, row=row)
    if row.outcome == "cancelled":
        return Answer(Cause.CANCELLED, occurrence, row=row)
    if row.reason in _MISSED:
        return Answer(_MISSED[row.reason], occurrence, until=row.finished_at)
    match row.reason:
        case "disabled":
            return (
                _paused(facts, occurrence) if facts.pauses else Answer(Cause.DISABLED, occurrence)
            )
        case "excluded":
            return Answer(Cause.EXCLUDED, occurrence, text=row.calendar)
        case "skip_next":
            return Answer(Cause.SKIPPED_ONCE, occurrence, row=row)
        case "dst_skip":
            return Answer(Cause.GAP, occurrence, text=row.error)
        case "coalesced":
            blocking = _running(facts, occurrence)
            return Answer(Cause.COALESCED, occurrence, row=blocking, until=_follow_up(facts, row))
        case "overlap_skip":
            blocking = _by_key(facts, row.blocked_by) or _running(facts, occurrence)
            return Answer(Cause.OVERLAP, occurrence, row=blocking)
    return Answer(Cause.SKIPPED, occurrence, row=row, text=row.reason)


def _unaccounted(facts: Facts, occurrence: datetime) -> Answer:
    state = facts.state
    if _is_before_registration(facts, occurrence):
        cause = Cause.OVERRIDDEN if facts.known_before else Cause.NOT_REGISTERED
        return Answer(cause, occurrence, until=state.registered_at)
    blocking = _running(facts, occurrence)
    if blocking is not None and occurrence > state.mark and facts.policy in DEFERRING:
        return Answer(Cause.COALESCED, occurrence, row=blocking, until=blocking.finished_at)
    blocked = _blocked(facts, occurrence)
    if blocked is not None:
        return blocked
    if occurrence <= state.mark and occurrence != state.boot_at:
        return Answer(Cause.FORGOTTEN, occurrence, until=facts.history_from)
    return _unserved(facts, occurrence)


def _is_before_registration(facts: Facts, occurrence: datetime) -> bool:
    registered, kept_from = facts.state.registered_at, facts.history_from
    is_pruned = kept_from is not None and occurrence < kept_from
    if facts.state.boot_at is not None or is_pruned:
        # The minute of the registration has its own start, which is pending or pruned.
        registered = registered.replace(second=0, microsecond=0)
    return occurrence < registered


def _no_occurrence(facts: Facts, schedule: Schedule, at: datetime) -> Answer:
    """Return why there is no occurrence: a clock change, a pending retry, or the schedule."""
    left_out = _left_out(facts, schedule, at)
    if left_out is not None:
        return left_out
    lost = _lost(schedule, at)
    if lost:
        is_ahead = at > facts.now
        until = schedule.next_after(at) if is_ahead else None
        return Answer(Cause.GAP_AHEAD if is_ahead else Cause.GAP, at, until=until, text=lost)
    if _is_second_pass(schedule, at):
        return Answer(Cause.FOLD, at, previous=schedule.latest_at_or_before(at))
    retry = _retry_after(facts, at)
    if retry is not None:
        return retry
    following, previous = schedule.next_after(at), schedule.latest_at_or_before(at)
    if following is None and previous is None:
        return Answer(Cause.NEVER_DUE, at)
    if previous is not None and previous < facts.state.registered_at:
        previous = None
    return Answer(Cause.NOT_DUE, at, until=following, previous=previous)


def _left_out(facts: Facts, schedule: Schedule, at: datetime) -> Answer | None:
    """Return the calendar or the operator that left out an occurrence, or ``None``."""
    occurrence = schedule.complete().named_by(at)
    if occurrence is None:
        return None
    if occurrence == schedule.omitted:
        return Answer(
            Cause.SKIPPED_ONCE, occurrence, row=_skip_of(facts, occurrence), skip=facts.skip
        )
    calendar = schedule.calendar_of(occurrence)
    following = schedule.next_after(occurrence)
    return Answer(Cause.EXCLUDED, occurrence, text=calendar, until=following) if calendar else None


def _skip_of(facts: Facts, occurrence: datetime) -> Row | None:
    found = (row for row in facts.rows if row.reason == "skip_next" and row.covers(occurrence))
    return next(found, None)


def _lost(schedule: Schedule, at: datetime) -> str:
    """Return the local time that a gap of the clock left out, or an empty text."""
    for gap in schedule.lost_between(at - _DAY, at):
        for change in next_transitions(schedule.zone, gap.resumes_at - _MINUTE, gap.resumes_at):
            if at - gap.resumes_at < change.after - change.before:
                return gap.civil.isoformat(sep=" ", timespec="minutes")
    return ""


def _is_second_pass(schedule: Schedule, at: datetime) -> bool:
    local = in_zone(at, schedule.zone)
    named = schedule.expression.matches(local.replace(tzinfo=None))
    return bool(local.fold) and schedule.fold == "first" and named


def _last_run(facts: Facts, at: datetime) -> Row | None:
    ended = [row for row in facts.rows if row.started_at and row.finished_at]
    before = [row for row in ended if row.finished_at and row.finished_at <= at]
    return before[-1] if before else None


def _last_failure(facts: Facts, at: datetime) -> Row | None:
    last = _last_run(facts, at)
    return last if last is not None and last.outcome in _WRONG else None


def _retry_after(facts: Facts, at: datetime) -> Answer | None:
    failure = _last_failure(facts, at)
    if failure is None:
        return None
    pending = facts.state.pending_retry_until
    later = [row for row in facts.rows if row.started_at and row.started_at > at]
    if later and later[0].reason == "retry":
        return Answer(Cause.RETRY_PENDING, at, row=failure, until=later[0].started_at)
    if not later and pending is not None and pending > at:
        return Answer(Cause.RETRY_PENDING, at, row=failure, until=pending)
    return None


def _future(facts: Facts, at: datetime) -> Answer:
    blocked, schedule = _blocked(facts, at), facts.schedule
    if blocked is not None or schedule is None:
        return blocked or Answer(Cause.BROKEN, at, text=facts.problem)
    pending = facts.state.pending_retry_until
    minute = at.replace(second=0, microsecond=0)
    if pending is not None and minute <= pending < minute + _MINUTE:
        return Answer(Cause.RETRY_PENDING, at, until=pending)
    occurrence = schedule.named_by(at)
    if occurrence is None:
        return _no_occurrence(facts, schedule, at)
    return Answer(Cause.WILL_RUN, occurrence)


def _running(facts: Facts, at: datetime) -> Row | None:
    found = [row for row in facts.rows if row.was_running(at)]
    return found[-1] if found else None


def _by_key(facts: Facts, key: int | None) -> Row | None:
    return next((row for row in facts.rows if row.key == key), None)


def _follow_up(facts: Facts, skipped: Row) -> datetime | None:
    later = (row.started_at for row in facts.rows if row.scheduled_for > skipped.scheduled_for)
    return min((at for at in later if at is not None), default=None)
