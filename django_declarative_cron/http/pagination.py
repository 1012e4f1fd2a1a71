"""Split a list into pages: a filter, a limit, and a cursor to the next page (CRON-S06)."""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.http import HttpRequest

from ..core.declarations.values import flaw_of_text
from ..models import ScheduledTask
from ..store.queries import tagged
from .responses import invalid

LIMIT: Final = 50
MAX_LIMIT: Final = 100

_ENABLED: Final = Q(enabled=True, paused_since=None)
_FILTERS: Final = {None: Q(), "true": _ENABLED, "false": ~_ENABLED}


def page_of(
    request: HttpRequest, tasks: QuerySet[ScheduledTask]
) -> tuple[list[ScheduledTask], dict[str, Any]]:
    """Return the tasks of the requested page, and its ``pagination``.

    Raises:
        RefusedError: 400 for an invalid parameter.
    """
    limit, after = _limit(request), _cursor(request)
    enabled = request.GET.get("enabled")
    if enabled not in _FILTERS:
        raise invalid("`enabled` must be true or false.", field="enabled")
    tasks = _tagged(request, tasks.filter(_FILTERS[enabled]))
    following = tasks if after is None else tasks.filter(name__gt=after)
    rows = list(following.order_by("name")[: limit + 1])
    has_more = len(rows) > limit
    rows = rows[:limit]
    pagination = {
        "total": tasks.count(),
        "limit": limit,
        "has_more": has_more,
        "next_cursor": _encoded(rows[-1].name or "") if has_more else None,
    }
    return rows, pagination


def _tagged(request: HttpRequest, tasks: QuerySet[ScheduledTask]) -> QuerySet[ScheduledTask]:
    tag = request.GET.get("tag")
    if tag is None:
        return tasks
    return tagged(tasks, tag) if flaw_of_text(tag) is None else tasks.none()


def _limit(request: HttpRequest) -> int:
    given = request.GET.get("limit", str(LIMIT))
    # ``isdigit`` also accepts digits of other scripts.
    is_number = given.isascii() and given.isdigit() and len(given) < 6
    if not is_number or not 1 <= int(given) <= MAX_LIMIT:
        raise invalid(f"`limit` must be a number from 1 to {MAX_LIMIT}.", field="limit")
    return int(given)


def _cursor(request: HttpRequest) -> str | None:
    given = request.GET.get("cursor")
    if given is None:
        return None
    try:
        padding = "=" * (-len(given) % 4)
        name = b64decode(given + padding, altchars=b"-_", validate=True).decode()
    except ValueError:
        name = "\0"
    if flaw_of_text(name) is not None:
        raise invalid("`cursor` is invalid: send the value of `next_cursor`.", field="cursor")
    return name


def _encoded(name: str) -> str:
    return urlsafe_b64encode(name.encode()).decode().rstrip("=")
