"""Tasks that are registered from outside: kept in their rows, upserted, switched, removed.

Their declaration lives in the row, so every scheduler of the deployment finds it there; a
registration set leaves them alone, unless it declares a task of the same name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from django.db.models import QuerySet

from ..conf import options, posted, stored
from ..core.declarations.declaration import Declaration
from ..core.declarations.runners import EXTERNAL
from ..core.reconcile import Plan, Stored, plan
from ..exceptions import DeclarativeCronError
from ..models import Origin, ScheduledTask, TaskOverride
from ..signals import publish_on_commit
from . import apply_plan, database, operator_actions
from .database import naming_what_is_held
from .guard import LockedDeployment, locked, outsider
from .operator_actions import Act
from .rows import NotRegisteredError, UnreadableRowError, options_of, stored_of


class OwnedError(Exception):
    """Raised if a task is declared in settings, and changed there only."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is declared in settings")
        self.name = name


@database.again_after_conflict
def post(declaration: Declaration, now: datetime, by: str = "") -> tuple[ScheduledTask, bool]:
    """Register a task, or bring its row up to date (CRON-26).

    Overrides follow the same rules as for registrations of settings; the number of runs and
    the first registration are kept.

    Returns:
        its row, as it stands now, and whether no task had its name before.

    Raises:
        OwnedError: settings declare a task of that name.
        django.db.Error: nothing was written.
    """
    member = outsider()
    with (
        naming_what_is_held(member.using, member.deployment),
        locked(member, create=True) as held,
    ):
        assert held is not None
        row = held.task(declaration.name)
        if row is not None and row.origin != Origin.HTTP:
            raise OwnedError(declaration.name)
        before = [] if row is None else [_stored(row)]
        _apply(held, plan([declaration], before), now)
        after = held.tasks.get(name=declaration.name)
        if by and after.registered_by != by[:255]:
            after.registered_by = by[:255]
            after.save(using=member.using, update_fields=["registered_by"])
    return after, row is None


@database.again_after_conflict
def switch(name: str, enabled: bool, act: Act) -> ScheduledTask:
    """Enable or disable a task (002 Toggle a CronJob).

    Returns:
        its row, as it stands now.

    Raises:
        NotRegisteredError: there is no such task.
        OwnedError: settings declare it.
        UnreadableRowError: its row cannot be read.
    """
    with _locked(name) as (held, row):
        switched = _switched(row, enabled)
        if switched is not None:
            _apply(held, plan([switched], [_stored(row)]), act.at)
            row.refresh_from_db()
        if (row.enabled and row.paused_since is None) is not enabled:
            # A person has paused it besides.
            _pause_or_resume(row, enabled, act)
            row.refresh_from_db()
    return row


@contextmanager
def _locked(name: str) -> Iterator[tuple[LockedDeployment, ScheduledTask]]:
    """Lock the deployment to change a task that was registered over HTTP."""
    member = outsider()
    with naming_what_is_held(member.using, member.deployment), locked(member) as held:
        row = None if held is None else held.task(name)
        if held is None or row is None:
            raise NotRegisteredError(name)
        if row.origin != Origin.HTTP:
            raise OwnedError(name)
        yield held, row


def _switched(row: ScheduledTask, enabled: bool) -> Declaration | None:
    """Return how a task is declared from now on, ``None`` where that is not known."""
    entry = options_of(row).get("entry")
    if row.enabled is enabled or not isinstance(entry, dict):
        return None
    declaration, _ = posted({**entry, "enabled": enabled})
    return declaration


def _pause_or_resume(row: ScheduledTask, enabled: bool, act: Act) -> None:
    name = row.name or ""
    if enabled and not row.enabled:
        raise UnreadableRowError(row.broken_reason or "its type is not registered in this process")
    taken = operator_actions.resume([name], act) if enabled else operator_actions.pause([name], act)
    if not taken:
        raise UnreadableRowError("its row is damaged: register it again")


@database.again_after_conflict
def remove(name: str, act: Act) -> None:
    """Remove a task; its runs stay, and one in flight may end (002 Remove a CronJob).

    Raises:
        NotRegisteredError: there is no such task (CRON-27).
        OwnedError: settings declare it.
    """
    with _locked(name) as (held, row):
        operator_actions.audit(held, [row], act, TaskOverride.Kind.REMOVE)
        _apply(held, Plan(orphaned=(name,)), act.at)


def tasks() -> QuerySet[ScheduledTask]:
    rows = ScheduledTask.objects.using(database.alias())
    return rows.filter(scheduler__deployment=options().DEPLOYMENT)


def read(name: str) -> ScheduledTask:
    """Return the row of a task.

    Raises:
        NotRegisteredError: there is no such task.
    """
    row = tasks().filter(name=name).first()
    if row is None:
        raise NotRegisteredError(name)
    return row


def _apply(held: LockedDeployment, todo: Plan, now: datetime) -> None:
    publish_on_commit(apply_plan.apply(held, todo, now), held.using)


def _stored(row: ScheduledTask) -> Stored:
    # A broken row is written anew, even where its digest says that nothing has changed.
    return stored_of(row)._replace(digest="") if row.broken_reason else stored_of(row)


_MOST: Final = 10_000

_understood: Final[dict[str, Declaration]] = {}


class StrangerError(LookupError):
    """Raised if a task is not in the active registration set."""

    def __init__(self) -> None:
        super().__init__("it is not declared in the active registration set")


class UnreadableError(LookupError):
    """Raised if this process cannot read a task registered over HTTP."""


def declaration_of(row: ScheduledTask, declarations: Mapping[str, Declaration]) -> Declaration:
    """Return the declaration of a task.

    Raises:
        StrangerError: the set does not have it.
        UnreadableError: it was registered over HTTP, and its type is not registered here.
    """
    if row.origin == Origin.HTTP:
        return own(row)
    declaration = declarations.get(row.name or "")
    if declaration is None:
        raise StrangerError
    return declaration


def own(row: ScheduledTask) -> Declaration:
    """Return the declaration that a task of HTTP carries in its row, understood once.

    Raises:
        UnreadableError: its type is not registered in this process, the text is damaged, or
            it is for workers outside and ``EXTERNAL_WORKERS`` is off.
    """
    if is_external(row) and not options().EXTERNAL_WORKERS:
        raise UnreadableError("workers outside do it, and the option EXTERNAL_WORKERS is off")
    known = _understood.get(row.digest)
    if known is None:
        known = _understand(row)
        if len(_understood) >= _MOST:
            _understood.clear()
        _understood[row.digest] = known
    return known


def is_external(row: ScheduledTask) -> bool:
    """Return whether external workers run a task of HTTP."""
    return row.origin == Origin.HTTP and options_of(row).get("runner") == EXTERNAL


def _understand(row: ScheduledTask) -> Declaration:
    try:
        return stored(options_of(row).get("entry"), is_external=is_external(row))
    except DeclarativeCronError as error:
        raise UnreadableError(error.message) from error
