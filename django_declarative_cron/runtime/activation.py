"""Making a registration set the active one: rows reconciled and engine told in one step."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from ..conf import Options
from ..core.declarations.declaration import Declaration, digest_of_set
from ..exceptions import ScheduleTaskError
from ..signals import publish
from ..store import database, reconcile
from ..store.guard import Bid, Member, Standing
from ..store.liveness import Process
from ..store.reconcile import Terms
from . import announce
from .clock import Clock
from .engine import Engine


class Activation:
    """Bring registration sets into the database and into an engine.

    Args:
        instance: UUID of the scheduler instance.
        clock: source of time.
        options: gives the options.
        terms: on which a set takes the place of another one.
    """

    def __init__(
        self, instance: UUID, clock: Clock, options: Callable[[], Options], terms: Terms
    ) -> None:
        self._instance = instance
        self._clock = clock
        self._options = options
        self._terms = terms

    def activate(
        self, engine: Engine, declarations: Sequence[Declaration], *, running: bool
    ) -> int:
        """Make a set the active one; between the old set and the new one lies no instant.

        Returns:
            the number of tasks that needed a write.

        Raises:
            ScheduleTaskError: it failed; everything stands as before.
        """
        member = self._member(declarations)
        try:
            if running and _is_active(engine, member):
                engine.replace(declarations)
                return 0
            # A run whose callback has ended is none in flight to the new set.
            engine.record(self._clock.now())
            done = self._swap(engine, member, declarations, self._clock.now(), self._terms)
        except ScheduleTaskError:
            raise
        except Exception as error:
            raise ScheduleTaskError(*_suspect(declarations, member), error) from error
        publish(done.events)
        if done.standing is Standing.SUPERSEDED:
            return 0
        announce.scheduled(self._clock.now(), declarations)
        return len(declarations) - len(done.plan.unchanged)

    def again(self, engine: Engine, now: datetime) -> None:
        """Activate the engine's own set again: its rows are gone, or nobody holds the active one.

        Raises:
            django.db.Error: everything stands as before.
        """
        member = engine.member
        if member is None:
            return
        if engine.standing is Standing.LEADING:
            found = reconcile.mismatch(member, engine.declarations)
            if found is not None:
                engine.refused("keeping the rows of the declared tasks", found, now)
        publish(self._swap(engine, member, engine.declarations, now, Terms.ORPHANED).events)

    def _swap(
        self,
        engine: Engine,
        member: Member,
        declarations: Sequence[Declaration],
        now: datetime,
        terms: Terms,
    ) -> reconcile.Reconciled:
        with engine.gate:
            began = engine.trust.moment()
            done = reconcile.reconcile(
                member, self._process(), declarations, now, terms, Bid(engine.watched())
            )
            engine.trust.renew(began, member.longest_silence)
            engine.adopt(member, declarations, done.standing)
        return done

    def _member(self, declarations: Sequence[Declaration]) -> Member:
        options = self._options()
        return Member(
            using=database.alias(),
            deployment=options.DEPLOYMENT,
            instance=self._instance,
            digest=digest_of_set(declarations),
            lease=options.LEASE,
            renew=options.RENEW,
            dead_after=options.DEAD_AFTER,
            database_time=self._clock.database_time(),
        )

    def _process(self) -> Process:
        return Process(socket.gethostname(), os.getpid(), self._options().RELEASE)


def _is_active(engine: Engine, member: Member) -> bool:
    mine = engine.member
    if mine is None or mine.digest != member.digest:
        return False
    return reconcile.active_digest(member.using, member.deployment) == member.digest


def _suspect(declarations: Sequence[Declaration], member: Member) -> tuple[str, str]:
    """Name what could not be scheduled: the one task, or the deployment."""
    if len(declarations) == 1:
        return declarations[0].name, declarations[0].cron
    return member.deployment, ""
