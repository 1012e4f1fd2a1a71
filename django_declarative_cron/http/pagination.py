"""Lists in pages: a filter, a limit, and a cursor that says where the next page begins."""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.http import HttpRequest

from ..core.declarations.values import flaw_of_text
from ..models import ScheduledTask
from .responses import invalid

LIMIT: Final = 50
MOST: Final = 100

_ENABLED: Final = Q(enabled=True, paused_since=None)
_FILTERS: Final = {"true": _ENABLED, "false": ~_ENABLED}


@dataclass(frozen=True, slots=True)
class Page:
    """One page of tasks.

    Args:
        rows: the tasks on it.
        pagination: what its reader is told of the others.
    """

    rows: list[ScheduledTask]
    pagination: dict[str, Any]


def page_of(request: HttpRequest, tasks: QuerySet[ScheduledTask]) -> Page:
    """Choose the page that a request asks for (CRON-S06).

    Raises:
        RefusedError: 400 for a value that means nothing.
    """
    limit, after = _limit(request), _cursor(request)
    tasks = tasks.filter(_filter(request))
    following = tasks.order_by("name")
    if after is not None:
        following = following.filter(name__gt=after)
    rows = list(following[: limit + 1])
    has_more = len(rows) > limit
    rows = rows[:limit]
    return Page(
        rows,
        {
            "total": tasks.count(),
            "limit": limit,
            "has_more": has_more,
            "next_cursor": _written(rows) if has_more else None,
        },
    )


def _filter(request: HttpRequest) -> Q:
    given = request.GET.get("enabled")
    if given is None:
        return Q()
    if given not in _FILTERS:
        raise invalid("`enabled` must be true or false.", field="enabled")
    return _FILTERS[given]


def _limit(request: HttpRequest) -> int:
    given = request.GET.get("limit", str(LIMIT))
    # Digits of other scripts are digits to `isdigit`.
    if not (given.isascii() and given.isdigit() and len(given) < 6 and 1 <= int(given) <= MOST):
        raise invalid(f"`limit` must be a number from 1 to {MOST}.", field="limit")
    return int(given)


def _cursor(request: HttpRequest) -> str | None:
    given = request.GET.get("cursor")
    if given is None:
        return None
    try:
        padding = "=" * (-len(given) % 4)
        name = b64decode(given + padding, altchars=b"-_", validate=True).decode()
    except ValueError:
        raise invalid("`cursor` is none of this server's.", field="cursor") from None
    if flaw_of_text(name) is not None:
        raise invalid("`cursor` is none of this server's.", field="cursor")
    return name


def _written(rows: Iterable[ScheduledTask]) -> str:
    *_, last = rows
    return urlsafe_b64encode((last.name or "").encode()).decode().rstrip("=")
