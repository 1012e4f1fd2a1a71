"""The strip above the list of tasks, and the banner of all lists while no scheduler runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.http import HttpRequest
from django.utils.translation import gettext, ngettext

from ..conf import options
from ..core.status import Status
from ..models import SchedulerInstance
from ..runtime.clock import system_clock
from ..store import database
from ..store.status import Attendance, attendance, gave_up, overdue_tasks, patience
from . import badges
from .filters import kinds_of

if TYPE_CHECKING:
    from .base import ReadOnlyModelAdmin

_COUNTED = (*(Status.BROKEN, Status.INTERRUPTED, Status.OVERDUE, Status.RUNNING),)


Count = tuple[str, str, str, str]
"""A number of tasks: its kind, its symbol, its text, and the query of the list of them."""


@dataclass(frozen=True, slots=True)
class ListSummary:
    """The leader, the standbys and the tasks that need attention."""

    leader: str
    title: str
    url: str
    standbys: str
    counts: list[Count]


@dataclass(frozen=True, slots=True)
class SchedulerBanner:
    """The last scheduler of a deployment that has none now."""

    overdue: int
    last: str = ""
    ago: str = ""
    was_stopped: bool = False
    url: str = ""


def list_summary(page: ReadOnlyModelAdmin, request: HttpRequest) -> ListSummary:
    leader = title = standbys = ""
    found, shows = attendance_of(request), page.shows(request, SchedulerInstance)
    if found is not None and found.present:
        within = patience(options().LEASE)
        leading = found.living_leader(within)
        if leading is not None:
            # Hide host names from users without the view permission.
            leader = str(leading) if shows else gettext("running")
            age = badges.span(timedelta(seconds=round(found.age(leading).total_seconds())))
            title = gettext("Last heartbeat: %(age)s ago") % {"age": age}
        number = len(found.heard(within)) - (leading is not None)
        text = ngettext("%(number)d standby", "%(number)d standbys", number)
        standbys = text % {"number": number}
    return ListSummary(
        leader=leader,
        title=title,
        url=page.url(SchedulerInstance, "changelist") if shows else "",
        standbys=standbys,
        counts=_counts(page, request),
    )


def _counts(page: ReadOnlyModelAdmin, request: HttpRequest) -> list[Count]:
    numbers = numbers_by_status(page, request)
    failing = sum(kind.number for kind in kinds_of(request, page) if kind.is_failing)
    found = [("failed", "✖", gettext("failed"), failing, "?failed=now")]
    found += [
        (str(each), each.symbol, str(badges.STATUS_WORDS[each]), numbers[each], f"?status={each}")
        for each in _COUNTED
    ]
    return [
        (kind, symbol, f"{badges.count(number)} {word.lower()}", query)
        for kind, symbol, word, number, query in found
        if number
    ]


def numbers_by_status(page: ReadOnlyModelAdmin, request: HttpRequest) -> Counter[str]:
    numbers = Counter[str]()
    for kind in kinds_of(request, page):
        numbers[kind.status] += kind.number
    return numbers


def attendance_of(request: HttpRequest) -> Attendance | None:
    """Return the schedulers of the deployment, read once for one request."""
    if not hasattr(request, "_ddc_attendance"):
        request._ddc_attendance = attendance(  # type: ignore[attr-defined]
            database.alias(), options().DEPLOYMENT, system_clock.database_time()
        )
    known: Attendance | None = request._ddc_attendance  # type: ignore[attr-defined]
    return known


def is_scheduler_running(request: HttpRequest) -> bool:
    """Return whether a scheduler sent a heartbeat lately."""
    found = attendance_of(request)
    return found is not None and bool(found.heard(patience(options().LEASE)))


def scheduler_banner(page: ReadOnlyModelAdmin, request: HttpRequest) -> SchedulerBanner | None:
    if is_scheduler_running(request):
        return None
    found = attendance_of(request)
    overdue = overdue_tasks(database.alias(), options().DEPLOYMENT, system_clock.now()).count()
    if found is None or found.last is None:
        return SchedulerBanner(overdue=overdue)
    last, shows = found.last, page.shows(request, SchedulerInstance)
    links = shows and page.model is not SchedulerInstance
    return SchedulerBanner(
        overdue=overdue,
        # Hide host names from users without the view permission.
        last=str(last) if shows else "",
        ago="" if gave_up(last) else badges.relative(last.heartbeat_at, found.now),
        was_stopped=last.stop_requested_at is not None,
        url=page.url(SchedulerInstance, "changelist") if links else "",
    )
