"""One pass of the scheduler: record what ended, start what is due, say when to look again."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import Error as DatabaseError

from ..core.declarations.declaration import Declaration
from ..core.liveness import Watch
from ..core.options import Options
from ..signals import publish
from ..store import claims
from ..store.guard import Bid, Member, Standing
from ..store.poll_query import Peek, peek
from ..store.recovery import unanswered
from . import announce
from .calls import Calls
from .clock import Clock, Moment, later
from .connections import renew
from .fencing import Admission, Resignation, Trust
from .housekeeping import Housekeeping
from .lifecycle import Lifecycle
from .observation import Audit, Pace, Vigil, is_orphaned, patience_for, told_of
from .outage import Outage
from .recording import Recording
from .runners import Runner
from .runners.registry import Runners
from .tracing import traced_tick

ACTS = timedelta(seconds=1)
"""How long a person's act, or another process's, may go unseen."""


class Engine:
    """The steps of one scheduler instance; it owns no thread and never sleeps.

    Args:
        clock: the only source of time.
        life: of the scheduler on whose behalf it calls.
        options: of that scheduler.
        runner: calls every callback; the runner of each task unless given.
    """

    def __init__(
        self, clock: Clock, life: Lifecycle, options: Options, runner: Runner | None = None
    ) -> None:
        self.clock = clock
        self.woken, self.stopping = threading.Event(), threading.Event()
        self.gate, self.standing = threading.RLock(), Standing.STANDBY
        self.runners = Runners(options, clock, lambda: self._member, runner)
        self.trust = Trust(clock)
        admission = Admission(clock, self.trust, lambda: self._member, self.refused)
        self._calls = Calls(clock, self.runners, life, self.woken.set, admission)
        self._life, self._housekeeping = life, Housekeeping(options, clock)
        self._declarations: dict[str, Declaration] = {}
        self._member: Member | None = None
        self._recording = Recording(self._calls, lambda: self._member)
        self._known_wake: datetime | None = None
        self._seen: Peek | None = None
        self._audit, self._outage, self._is_in_doubt = Audit(), Outage(clock), False
        self._pace, self._vigil, self._resignation = Pace(), Vigil(), Resignation()

    # --- what the scheduler tells the engine ---

    def adopt(
        self, member: Member, declarations: Sequence[Declaration], standing: Standing
    ) -> None:
        """Evaluate another registration set from now on."""
        with self.gate:
            self._member, self.standing = member, standing
            self._declarations = {each.name: each for each in declarations}
            self._known_wake, self._seen, self._audit = None, None, Audit()
        self.runners.prepare(declarations)
        self.woken.set()

    def replace(self, declarations: Sequence[Declaration]) -> None:
        """Call the callables of an equal set from now on."""
        with self.gate:
            self._declarations = {each.name: each for each in declarations}
        self.runners.prepare(declarations)

    @property
    def member(self) -> Member | None:
        """Return who this instance is, once it has a registration set."""
        return self._member

    @property
    def declarations(self) -> Sequence[Declaration]:
        """Return the registration set it evaluates."""
        return list(self._declarations.values())

    @property
    def has_tasks(self) -> bool:
        """Return whether there is a task to look for, as far as is known."""
        return bool(self._declarations or self._known_wake)

    def request_stop(self) -> None:
        """Start nothing more; what was started before is called and recorded."""
        self.stopping.set()
        self.woken.set()

    def write_down_stop(self, now: datetime) -> None:
        """Give up the lead, and let people see that a stop was asked for."""
        self._resignation.hand_in(self._member, now)

    @property
    def unfinished(self) -> int:
        """Count the runs that have not ended and the results not yet recorded."""
        return self._calls.unfinished

    @property
    def running(self) -> int:
        """Count the runs whose callback has not ended."""
        return self._calls.running

    def patience(self) -> float:
        """Return the most seconds until the next pass; a standby looks closer at the lead."""
        is_calm = self.standing is Standing.STANDBY and not self._is_in_doubt
        return patience_for(self._seen if is_calm else None, self._housekeeping.patience(ACTS))

    # --- one pass ---

    def tick(self, began: Moment) -> datetime | None:
        """Do one pass.

        Returns:
            when something is to be done next, as far as is known.
        """
        now = began.at
        try:
            if self._pace.notice(self._member, began):
                self._known_wake = None
            self._record(now)
            following = self._evaluate(later(self.clock, began))
        except BaseException as error:
            self._is_in_doubt = True  # What a project puts around statements may fail behind one.
            if not isinstance(error, DatabaseError):
                raise
            self.refused("evaluating", error, now)
            return now + ACTS
        self._outage.ends()
        return now if self._recording.is_behind else following

    def record(self, now: datetime) -> None:
        """Write every result that is waiting; what cannot be written stays waiting.

        Raises:
            django.db.Error: the results are kept.
        """
        self.runners.look()
        self._recording.write_all(now)
        self._known_wake = None

    def _record(self, now: datetime) -> None:
        self.runners.look()
        is_due = self._is_known_to_lead_into_work(now)
        if self._recording.write(now, is_due=is_due) and not is_due:
            # An end may ask for an earlier look; what is due already stays so.
            self._known_wake = None

    def next_wake(self) -> datetime | None:
        """Return when the next task is to be considered, after a look where that is unknown."""
        if self._known_wake is None and self._member is not None:
            self._look(self._member)
        return self._known_wake

    def _coming(self) -> datetime | None:
        """Return the next instant that may bring starts: of none that stops, or does not lead."""
        is_to_start = self.standing is Standing.LEADING and not self.stopping.is_set()
        return self._known_wake if is_to_start else None

    def _evaluate(self, now: datetime) -> datetime | None:
        member = self._member
        if member is None or self.stopping.is_set():
            return None
        if not self._declarations:
            self._look(member)  # Others may have been registered from outside.
        if not self.has_tasks:
            return None
        if self._is_in_doubt:
            self._call_what_was_not_answered(member)
        if not self._is_known_to_lead_into_work(now):
            self._look(member)
        held_up = False
        if self._is_to_claim(member, now):
            held_up = not self._claim(member, now)
            self._look(member)
        if member is not self._member:
            return now  # Another set was adopted meanwhile: to be looked at at once.
        if self.standing is Standing.LEADING:
            self._housekeeping.use_the_quiet(member, now, self._known_wake)
        return now + ACTS if held_up else self._coming()  # Or somebody else holds what is due.

    def _is_known_to_lead_into_work(self, now: datetime) -> bool:
        """Return whether a claim follows anyway, so that a look before it says nothing new."""
        return (coming := self._coming()) is not None and coming <= now

    def _look(self, member: Member) -> None:
        """Ask in one query who leads and when the next task is to be considered."""
        seen = peek(member)
        with self.gate:
            if member is not self._member:
                return  # Another set was adopted meanwhile; this was seen of the old one.
            self._seen = seen
            self._known_wake = self._known_wake if seen is None else seen.next_wake
        if seen is not None:
            self._vigil.look(member, seen.database_now)
            if not seen.has_instance:
                self._audit.suspect()
            if seen.cancels:
                self._calls.cancel(member)
            self._stand(member, seen.standing(member), seen)

    def _is_to_claim(self, member: Member, now: datetime) -> bool:
        if self.standing is Standing.STANDBY:
            return self._seen is not None and self._seen.is_vacant
        due = self._is_known_to_lead_into_work(now)
        return due or (self.standing is Standing.LEADING and self._finds_silence(member))

    def _finds_silence(self, member: Member) -> bool:
        return self._seen is not None and self._seen.shows_silence(member, self.watched())

    @traced_tick
    def _claim(self, member: Member, now: datetime) -> int:
        """Start what is due; give the number of tasks that were considered."""
        began = self.clock.monotonic()
        started, considered, more, reaping = 0, 0, True, self._finds_silence(member)
        announce.poll_started(now, len(self._declarations))
        while more:
            with self.gate:
                if self.stopping.is_set() or member is not self._member:
                    break
                claimed = claims.claim_due(
                    member,
                    self._declarations,
                    now,
                    reaping=reaping,
                    bid=self.bid,
                    busy=self.running > 0,
                    unrecorded=self._recording.unrecorded,
                )
                work = self._calls.take(claimed.claims, self.stopping)
            # Without the gate: a receiver may ask for another set, or for a stop.
            try:
                publish(claimed.events)
            finally:
                self._calls.call(work)
            self._stand(member, claimed.standing, None)
            started += len(claimed.claims)
            considered += claimed.considered
            more, reaping = claimed.more, False
            if claimed.strangers:
                self._audit.suspect()
            self._housekeeping.note(claimed.events)
        announce.poll_completed(now, considered, started, self.clock.monotonic() - began)
        return considered

    def _call_what_was_not_answered(self, member: Member) -> None:
        """After a refusal, look whether starts were committed all the same."""
        with self.gate:
            if self.stopping.is_set() or member is not self._member:
                return
            found = unanswered(member, self._calls.known, self._declarations)
            work = self._calls.take(found, self.stopping)
            self._is_in_doubt = False
        try:
            publish([claim.started for claim in found])
        finally:
            self._calls.call(work)

    # --- what it notices ---

    def _stand(self, member: Member, standing: Standing, seen: Peek | None) -> None:
        with self.gate:
            if member is not self._member:
                return
            before, self.standing = self.standing, standing
        publish(told_of(before, standing, seen, member, self.clock.now()))

    def is_to_activate_again(self, now: datetime) -> bool:
        """Return whether the own set must be activated anew: rows or all other holders are gone."""
        match self._member, self.standing:
            case Member() as member, Standing.SUPERSEDED:
                return is_orphaned(member, self.watched())
            case Member() as own, Standing.LEADING:
                return self._audit.finds_loss(own, len(self._declarations), now, self._known_wake)
        return False

    def watched(self) -> Watch | None:
        """Return from when to when it has watched the others without a gap."""
        return self._vigil.watched

    @property
    def bid(self) -> Bid:
        """Return on what grounds it leads: no longer than it is asked to stop."""
        return Bid(self.watched(), lambda: not self.stopping.is_set())

    def refused(self, doing: str, error: Exception, now: datetime) -> None:
        """Tell of a refusal of the database that is outlived."""
        renew(error)
        self._vigil.refuse()
        self._is_in_doubt = True
        leader = self._member if self.standing is Standing.LEADING else None
        if leader is not None and not self.trust.holds(leader.lease):
            self._stand(leader, Standing.STANDBY, self._seen)
        self._outage.fails(doing, error, now)
