"""One tick of the scheduler: record results, poll, claim, publish, call, plan the next tick."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import Error as DatabaseError

from ..core import events
from ..core.declarations.declaration import Declaration
from ..core.liveness import Watch
from ..core.options import Options
from ..signals import publish
from ..store import claims, liveness, recovery
from ..store.guard import Candidacy, Member, Peek, Role, peek
from .clock import Clock, Moment, later
from .connections import Outage, renew
from .executor import Executor
from .fencing import Fence, LeaseValidity, ObservedWindow
from .housekeeping import Housekeeping, RowAudit
from .runners import Runner
from .runners.registry import Runners
from .tracing import traced_tick
from .work import Work

POLL_INTERVAL = timedelta(seconds=1)
"""How often the database is polled while nothing is due: operators act from other processes."""

STANDBY_INTERVAL = timedelta(seconds=0.5)
"""How often a standby looks whether the lead is free."""


@dataclass(slots=True, eq=False)
class View:
    """An instance's knowledge of its deployment, while it holds one registration set."""

    member: Member
    declarations: dict[str, Declaration]
    role: Role
    seen: Peek | None = None
    next_wake: datetime | None = None
    audit: RowAudit = field(default_factory=RowAudit)

    @property
    def has_tasks(self) -> bool:
        """Return whether there is a task to poll for: others are registered over HTTP."""
        return bool(self.declarations or self.next_wake)

    @property
    def next_start(self) -> datetime | None:
        return self.next_wake if self.role is Role.LEADING else None

    def is_due(self, now: datetime) -> bool:
        return self.next_start is not None and self.next_start <= now

    def shows_silence(self, watched: Watch | None) -> bool:
        return self.seen is not None and self.seen.shows_silence(self.member, watched)

    def is_to_claim(self, now: datetime, watched: Watch | None) -> bool:
        if not self.has_tasks:
            return False
        if self.role is Role.STANDBY:
            return self.seen is not None and self.seen.is_vacant
        is_leading = self.role is Role.LEADING
        return self.is_due(now) or (is_leading and self.shows_silence(watched))


class Engine:
    """The passes of one scheduler instance; it owns no thread and never sleeps.

    Args:
        clock: the only source of time.
        owner: the scheduler that it polls for.
        options: of that scheduler.
        runner: calls every callback; the runner of each task unless given.
    """

    def __init__(
        self, clock: Clock, owner: object, options: Options, runner: Runner | None = None
    ) -> None:
        self.clock = clock
        self.woken, self.stopping, self.gate = (
            threading.Event(),
            threading.Event(),
            threading.RLock(),
        )
        self.validity, self.window = LeaseValidity(clock), ObservedWindow()
        self.runners = Runners(options, clock, lambda: self.member, runner)
        fence = Fence(clock, self.validity, self.refused)
        self.executor = Executor(clock, self.runners, owner, fence, self.woken.set)
        self._housekeeping, self._outage = Housekeeping(options, clock), Outage(clock)
        self._view: View | None = None
        self._is_in_doubt = self._is_stop_written = False

    # --- one pass ---

    def tick(self, began: Moment) -> datetime | None:
        """Do one pass.

        Returns:
            when the next one is needed, as far as is known.
        """
        try:
            self._follow_clock_steps(began)
            self._record_results(began.at)  # step 1: record results
            now, following = later(self.clock, began), None
            if (view := self._view) is not None and not self.stopping.is_set():
                self._poll(view, now)  # step 2: poll
                considered = None
                if view.is_to_claim(now, self.window.watched):
                    considered = self._start_due_tasks(view, now)  # steps 3 to 5
                following = self._next_pass(view, now, considered)  # step 6: the next tick
        except BaseException as error:
            # Any error may hide that a start was committed: the answer of the database may be lost.
            self._is_in_doubt = True
            if not isinstance(error, DatabaseError):
                raise
            self.refused("evaluating", error, began.at)
            return began.at + POLL_INTERVAL
        self._outage.ends()
        return began.at if self.executor.is_behind else following

    @traced_tick
    def _start_due_tasks(self, view: View, now: datetime) -> int:
        """Claim, publish and call, batch by batch; return how many tasks were considered."""
        began, started, considered = self.clock.monotonic(), 0, 0
        is_more, reaping = True, view.shows_silence(self.window.watched)
        tasks = len(view.declarations)
        publish([events.PollStarted(at=now, poll_time=now, scheduled_task_count=tasks)])
        while is_more:
            with self.gate:
                if self.stopping.is_set() or view is not self._view:
                    break
                claimed = self._claim(view, now, reaping=reaping)  # step 3: claim
                work = self.executor.take(view.member, claimed.claims, self.stopping)
            self._publish_and_call(claimed.events, work)  # steps 4 and 5: publish, call
            self._take_role(view, claimed.role)
            started, considered = started + len(work), considered + claimed.considered
            is_more, reaping = claimed.more, False
            if claimed.strangers:
                view.audit.suspect()
            self._housekeeping.note(claimed.events)
        completed = events.PollCompleted(
            at=now,
            poll_time=now,
            tasks_evaluated=considered,
            tasks_executed=started,
            duration=self.clock.monotonic() - began,
        )
        publish([completed])
        return considered

    def _claim(self, view: View, now: datetime, *, reaping: bool) -> claims.Claimed:
        return claims.claim_due(
            view.member,
            view.declarations,
            now,
            reaping=reaping,
            candidacy=self.candidacy,
            busy=self.executor.running > 0,
            unrecorded=self.executor.unrecorded,
        )

    def _publish_and_call(self, told: Sequence[events.Event], work: Sequence[Work]) -> None:
        # Outside of the gate: a receiver may initialize or stop the scheduler.
        try:
            publish(told)
        finally:
            self.executor.call(work)

    def _next_pass(self, view: View, now: datetime, considered: int | None) -> datetime | None:
        if considered is not None:
            self._look(view)
        if view is not self._view:
            return now  # Another registration set was adopted during the pass.
        if not view.has_tasks:
            return None
        if view.role is Role.LEADING:
            self._housekeeping.work(view.member, now, view.next_wake)
        if considered == 0 and view.is_due(now):
            return now + POLL_INTERVAL  # Another transaction holds the rows that are due.
        return None if self.stopping.is_set() else view.next_start

    # --- results ---

    def record(self, now: datetime) -> None:
        """Write every result that is waiting.

        Raises:
            django.db.Error: the results are kept.
        """
        self.runners.look()
        if self._view is not None:
            self.executor.record_all(self._view.member, now)
            self._view.next_wake = None

    def _record_results(self, now: datetime) -> None:
        self.runners.look()
        if (view := self._view) is None:
            return
        is_due = view.is_due(now) and not self.stopping.is_set()
        if self.executor.record(view.member, now, is_due=is_due) and not is_due:
            view.next_wake = None  # A retry may be due earlier than the next known start.

    # --- polling ---

    def _poll(self, view: View, now: datetime) -> None:
        if self._is_in_doubt:
            self._call_unanswered(view)
        if not view.is_due(now):  # Otherwise the claim returns the same data as a poll.
            self._look(view)

    def _look(self, view: View) -> None:
        """Query the leader and the time of the next due task."""
        view.seen = seen = peek(view.member)
        if seen is None or view is not self._view:
            return
        view.next_wake = seen.next_wake
        self.window.extend(view.member, seen.database_now)
        if not seen.has_instance:
            view.audit.suspect()
        if seen.cancels:
            self.executor.cancel(view.member)
        self._take_role(view, seen.role(view.member), seen)

    def _call_unanswered(self, view: View) -> None:
        """Call starts that were committed although the database did not answer."""
        with self.gate:
            if self.stopping.is_set() or view is not self._view:
                return
            found = recovery.unanswered(view.member, self.executor.known, view.declarations)
            work = self.executor.take(view.member, found, self.stopping)
            self._is_in_doubt = False
        self._publish_and_call([claim.started for claim in found], work)

    def next_wake(self) -> datetime | None:
        """Return when the next task is to be considered; poll where that is unknown."""
        if self._view is None:
            return None
        if self._view.next_wake is None:
            self._look(self._view)
        return self._view.next_wake

    def longest_sleep(self) -> float:
        """Return the most seconds until the next pass."""
        view = self._view
        is_calm = view is not None and view.role is Role.STANDBY and not self._is_in_doubt
        seen = view.seen if view is not None and is_calm else None
        return longest_sleep(seen, self._housekeeping.longest_sleep(POLL_INTERVAL))

    # --- registration set, role, stop ---

    @property
    def member(self) -> Member | None:
        """Return this instance, ``None`` before it has a registration set."""
        return None if self._view is None else self._view.member

    @property
    def role(self) -> Role:
        return Role.STANDBY if self._view is None else self._view.role

    @property
    def declarations(self) -> Sequence[Declaration]:
        return [] if self._view is None else list(self._view.declarations.values())

    @property
    def has_tasks(self) -> bool:
        return self._view is not None and self._view.has_tasks

    @property
    def candidacy(self) -> Candidacy:
        """Return its candidacy for leadership; it gives up leadership when it has to stop."""
        return Candidacy(self.window.watched, lambda: not self.stopping.is_set())

    def adopt(self, member: Member, declarations: Sequence[Declaration], role: Role) -> None:
        """Evaluate another registration set from now on."""
        with self.gate:
            self._view = View(member, {each.name: each for each in declarations}, role)
        self.runners.prepare(declarations)
        self.woken.set()

    def replace(self, declarations: Sequence[Declaration]) -> None:
        """Call the callables of an equal registration set from now on."""
        if self._view is not None:
            self._view.declarations = {each.name: each for each in declarations}
        self.runners.prepare(declarations)

    def request_stop(self) -> None:
        """Start nothing more; runs that were started are called and recorded."""
        self.stopping.set()
        self.woken.set()

    def write_down_stop(self, now: datetime) -> None:
        """Give up leadership, once; after a database error, the next call retries."""
        if self.member is not None and not self._is_stop_written:
            with suppress(DatabaseError):
                liveness.stop_requested(self.member, now)
                self._is_stop_written = True

    def is_to_activate_again(self, now: datetime) -> bool:
        """Return whether rows were deleted, or no living instance holds the active set."""
        if (view := self._view) is None:
            return False
        if view.role is Role.SUPERSEDED:
            return _is_orphaned(view.member, self.window.watched)
        is_leading = view.role is Role.LEADING
        tasks = len(view.declarations)
        return is_leading and view.audit.finds_loss(view.member, tasks, now, view.next_wake)

    def refused(self, doing: str, error: Exception, now: datetime) -> None:
        """Report a refusal of the database and go on."""
        renew(error)
        self.window.interrupt()
        self._is_in_doubt = True
        view = self._view
        is_leading = view is not None and view.role is Role.LEADING
        if view is not None and is_leading and not self.validity.holds(view.member.lease):
            self._take_role(view, Role.STANDBY, view.seen)
        self._outage.fails(doing, error, now)

    def _follow_clock_steps(self, began: Moment) -> None:
        view = self._view
        stepped = self._housekeeping.follow_clock_steps(self.member, began)
        if stepped and view is not None:
            view.next_wake = None

    def _take_role(self, view: View, role: Role, seen: Peek | None = None) -> None:
        with self.gate:
            if view is not self._view:
                return
            before, view.role = view.role, role
        publish(_change_of_role(before, view, seen, self.clock.now()))


def _change_of_role(
    before: Role, view: View, seen: Peek | None, now: datetime
) -> list[events.Event]:
    """Return the event of a change of role that no transaction of the store reports."""
    term, instance = 0 if seen is None else seen.term, str(view.member.instance)
    match before, view.role:
        case ((Role.LEADING | Role.STANDBY), Role.SUPERSEDED) if seen is not None:
            return [events.SchedulerSuperseded(at=now, generation=seen.generation)]
        case Role.LEADING, Role.STANDBY:
            return [events.LeadershipLost(at=now, term=term, instance=instance)]
        case Role.STANDBY, Role.LEADING if seen is not None:
            # It had stopped to rely on its lease while the database was away.
            return [events.LeadershipGained(at=now, term=term, instance=instance)]
    return []


def _is_orphaned(member: Member, watched: Watch | None) -> bool:
    """Return whether every instance that holds the active registration set is dead."""
    seen = peek(member)
    if seen is None:
        return True
    now = seen.database_now
    return not recovery.has_living_holder(member, seen.digest, seen.watched, watched, now)


def longest_sleep(seen: Peek | None, seconds: float) -> float:
    """Return the most seconds until the next poll; a standby polls before the lease ends."""
    if seen is None:
        return seconds
    return min(seconds, STANDBY_INTERVAL.total_seconds(), max(seen.lapses_in, 0.02))
