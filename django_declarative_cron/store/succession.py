"""Which registration set may take the place of which (semantics 2 and 9).

The newest successful initialisation wins: its set is the active one, and who holds another
set is superseded. There are two exceptions.

- ``RELEASE`` is set on both sides, and the one that comes is the older one: it does not take
  the set back when it merely restarts. Of two releases made of numbers the smaller one is
  older; of others, such as hashes of commits, the one that was active first.
- Nobody who lives holds the active set: whoever lives takes his own back.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum

from django.db.models import Min

from ..core.release import is_older
from ..models import SchedulerInstance
from . import dead, vigil
from .guard import Locked, Member


class Terms(Enum):
    """On what terms a registration set takes the place of another one."""

    UNLESS_OLDER = "unless it is of an older release"
    BY_FORCE = "in any case"
    ORPHANED = "where nobody holds the active one"


def may_take(held: Locked, member: Member, release: str, terms: Terms) -> bool:
    """Tell whether a set may become the active one.

    Args:
        held: the locked row of the deployment.
        member: who holds the set.
        release: of the project it belongs to.
        terms: on which it comes.
    """
    active = held.row.digest
    if terms is Terms.BY_FORCE or active in ("", member.digest):
        return True
    if terms is Terms.UNLESS_OLDER:
        return not _is_older_release(held, member, release)
    own, now = held.bid.watched, held.database_now
    return not dead.has_living_holder(member, active, vigil.kept_in(held.row), own, now)


def is_newer(held: Locked, member: Member, release: str) -> bool:
    """Tell whether a release is another one than that of the active set, and no older one.

    Args:
        held: the locked row of the deployment.
        member: who asks.
        release: of the project it belongs to.
    """
    is_other = release not in ("", held.row.release)
    return is_other and not _is_older_release(held, member, release)


def _is_older_release(held: Locked, member: Member, release: str) -> bool:
    active = held.row.release
    if not release or not active or release == active:
        return False
    older = is_older(release, active)
    if older is not None:
        return older
    first, first_of_active = (_first(held, member, each) for each in (release, active))
    return first is not None and (first_of_active is None or first < first_of_active)


def _first(held: Locked, member: Member, release: str) -> datetime | None:
    """Give when a release was active first."""
    known = SchedulerInstance.objects.using(member.using).filter(
        scheduler=held.row, release=release
    )
    first: datetime | None = known.aggregate(first=Min("initialized_at"))["first"]
    return first
