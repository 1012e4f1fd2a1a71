"""The seal: one number by which the database itself says what its rows of tasks are.

A set that is registered is sealed: the server takes one number from all of its rows, of the
columns that a plan looks at, and it is kept with the digest of the set. While both are what they
were, each row is as it was declared, and none has to be fetched to be compared: of a hundred
thousand tasks that takes most of the time of a start. Where either is another, or there is no
seal, every row is compared. A seal is no proof against somebody who means to deceive, and need not
be: who may write rows may write this one too.

PostgreSQL alone can tell it. How it takes the number may be another with its next version; then
the rows are compared once, and sealed anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.db import connections
from django.db.models.expressions import RawSQL

from ..core.decide import BELIEVABLE
from ..core.declaration import MICROSECOND
from ..models import (
    Origin,
    Outcome,
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from . import dead
from .guard import Locked, Member
from .prepared import Asked, Prepared, Worded

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _hashed(*texts: str) -> str:
    """Word the number of a row; to take that of a whole record takes the server twice as long."""
    # Only a delay may be nothing, in a row that is sealed.
    number = "coalesce(interval_hash_extended(retry_delay, 0), 0)"
    for column in texts:
        number = f"hashtextextended({column}, {number})"
    return f"coalesce({number}, 0)"


_SEAL: Final = (
    f"bit_xor({_hashed('name', 'cron', 'timezone', 'digest', 'origin')})"
    f" FILTER (WHERE origin = '{Origin.SETTINGS.value}')"
)

# The same as ``marks.ahead_of``, and more than ``dead.is_lost`` and ``dead.is_anybody``: Django
# takes longer to word those than the server to answer, and each process asks once. It is asked on
# the way to the deployment's row, so that nothing is known yet of that: of another set, no row is
# looked at, and how long somebody may have been silent is judged afterwards.
_LOOK: Final = f"""
    WITH mine AS (SELECT id FROM {{states}} WHERE deployment = %s AND digest = %s)
    SELECT {_SEAL},
        bool_or(
            running_run IS NOT NULL
            OR wake_at > %s AND (
                orphaned OR boot_at IS NOT NULL OR run_requested_at IS NOT NULL
                OR discharged_at > %s OR registered_at > %s
                OR pending_retry_until IS NOT NULL
                OR origin = '{Origin.HTTP.value}' AND broken_reason <> ''
            )
        )
        OR EXISTS (SELECT FROM {{instances}} WHERE id = %s)
        OR EXISTS (
            SELECT FROM {{runs}} WHERE scheduler_id = (SELECT id FROM mine)
            AND running_slot >= '' AND reservation IS NULL
            AND outcome <> '{Outcome.WAITING.value}' AND instance_id IS DISTINCT FROM %s
        ),
        (
            SELECT extract(epoch FROM min(heartbeat_at)) FROM {{instances}}
            WHERE scheduler_id = (SELECT id FROM mine) AND stopped_at IS NULL
        )
    FROM {{tasks}} WHERE scheduler_id = (SELECT id FROM mine)
"""

_TAKE: Final = f"SELECT {_SEAL} FROM {{tasks}} WHERE scheduler_id = %s"

_TABLES: Final = {
    "states": SchedulerState,
    "tasks": ScheduledTask,
    "runs": TaskRun,
    "instances": SchedulerInstance,
}


class _Looked(Prepared[Any]):
    """The look: what is found is no model."""

    def _word(self, using: str, make: Callable[[], Any]) -> Worded:
        return Worded(_worded(_LOOK, using), [], [], [], slice(0), {})

    def read(self, using: str, worded: Worded, found: list[Any]) -> list[Any]:
        return found


_looked: Final = _Looked(ScheduledTask)


@dataclass(frozen=True, slots=True)
class Look:
    """What the database says of the rows of a deployment, without giving any.

    Args:
        seal: what they are; ``None`` where there are none, or nobody can tell.
        is_calm: as for ``Survey``.
    """

    seal: int | None
    is_calm: bool


def asked(member: Member, now: datetime) -> list[Asked[Any]]:
    """Give the question what the rows are, to be asked as the deployment's row is locked.

    Args:
        member: who initialises.
        now: the instant of the initialisation.
    """
    if not _is_told(member.using):
        return []
    ahead, me = now + BELIEVABLE, member.instance
    values = [member.deployment, member.digest, now, ahead, ahead, me, me]
    return [Asked(_looked, _nothing, values)]


def _nothing() -> Any:
    raise NotImplementedError("it is worded by hand")


def look(held: Locked, member: Member, now: datetime) -> Look:
    """Say what the rows are, and whether there is anything to be done beside a plan.

    Args:
        held: the locked row of the deployment.
        member: who initialises, with the set that is active.
        now: the instant of the initialisation.
    """
    for question in asked(member, now):
        [(seal, is_to_do, heard)] = held.fetch(member.using, question)
        silent_since = dead.silent_since(held, member) - _EPOCH
        is_silent = heard is not None and heard * 1_000_000 <= silent_since // MICROSECOND
        # Of what has no instant, nobody knows whether that lies ahead: it does not.
        return Look(seal, is_calm=not is_to_do and not is_silent)
    return Look(None, is_calm=False)


def of_what_is_there(held: Locked, member: Member) -> Any:
    """Give what takes the seal of the rows when it is saved, ``None`` where none can be taken.

    Args:
        held: the locked row of the deployment.
        member: who has written them.
    """
    taken = RawSQL(_worded(_TAKE, member.using), [held.row.pk])  # noqa: S611 - all names are ours
    return taken if _is_told(member.using) else None


def _worded(sql: str, using: str) -> str:
    quote = connections[using].ops.quote_name
    return sql.format(**{name: quote(model._meta.db_table) for name, model in _TABLES.items()})


def _is_told(using: str) -> bool:
    return connections[using].vendor == "postgresql"
