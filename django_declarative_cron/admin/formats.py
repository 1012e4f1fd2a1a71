"""Instants, spans and schedules as people read them; every instant names its zone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from django.utils import timezone
from django.utils.dates import MONTHS, WEEKDAYS
from django.utils.formats import number_format
from django.utils.functional import lazy
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import get_language, gettext, ngettext, override
from django.utils.translation import gettext_lazy as _

from ..cron import CronExpression, describe
from ..cron.zones import is_shown_twice

_NAMES_SHOWN = 10
_SECOND = timedelta(seconds=1)
_MILLISECOND = timedelta(milliseconds=1)
_UNITS = (
    (timedelta(days=1), _("d")),
    (timedelta(hours=1), _("h")),
    (timedelta(minutes=1), _("min")),
    (_SECOND, _("s")),
)


def moment(value: datetime) -> SafeString:
    """Show an instant to the second, in the zone the project shows times in."""
    local = value.astimezone(timezone.get_current_timezone())
    return _time(value, f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()}")


def occurrence(value: datetime, zone: tzinfo) -> SafeString:
    """Show an occurrence in the zone of its schedule; which one, where the clocks show two."""
    local = value.astimezone(zone)
    civil = f"{local:%Y-%m-%d %H:%M:%S}" if local.second else f"{local:%Y-%m-%d %H:%M}"
    which = f" {local.tzname()}" if is_shown_twice(value, zone) else ""
    return _time(value, f"{civil}{which} {zone}")


def _time(value: datetime, text: str) -> SafeString:
    machine = value.astimezone(UTC).isoformat()
    return format_html('<time class="ddc-time" datetime="{}">{}</time>', machine, text)


def relative(value: datetime, now: datetime) -> str:
    """Return how far an instant is from now, by elapsed time."""
    if abs(value - now) < timedelta(minutes=1):
        return gettext("in less than a minute") if value > now else gettext("just now")
    # In UTC, or the hour that a clock change took away would count as time that passed.
    early, late = sorted((value.astimezone(UTC), now.astimezone(UTC)))
    distance = timesince(early, late, depth=1).replace("\xa0", " ")
    text = gettext("in %(distance)s") if value > now else gettext("%(distance)s ago")
    return text % {"distance": distance}


def span(length: timedelta | None) -> str:
    """Show a length of time with its two largest units."""
    if length is None:
        return ""
    if timedelta(0) < length < _SECOND:
        return gettext("%(number)s ms") % {"number": max(length // _MILLISECOND, 1)}
    if length < timedelta(minutes=1):
        seconds = max(length / _SECOND, 0.0)
        return gettext("%(number)s s") % {"number": f"{seconds:.1f}".removesuffix(".0")}
    return _largest_units(length)


def _largest_units(length: timedelta) -> str:
    parts: list[tuple[int, str]] = []
    for unit, word in _UNITS:
        number, length = divmod(length, unit)
        if number or parts:
            parts.append((number, str(word)))
    return " ".join(f"{number} {word}" for number, word in parts[:2] if number)


def words(expression: CronExpression) -> str:
    """Word a schedule in the active language."""
    return _words(expression, get_language() or "en")


@lru_cache(maxsize=4096)
def _words(expression: CronExpression, language: str) -> str:
    return describe(expression, language, _calendar_names())


def _calendar_names() -> dict[str, str]:
    lazy = [*WEEKDAYS.values(), *MONTHS.values()]
    with override(None):
        english = [str(name) for name in lazy]
    return dict(zip(english, map(str, lazy), strict=True))


def count(number: int, most: int | None = None) -> str:
    """Show how many there are, in groups of three digits; nothing where there are none."""
    shown = number_format(number, force_grouping=True) if number else ""
    return f"{shown}+" if most is not None and number >= most else shown


grouped = lazy(count, str)
"""As ``count``, in the language of whoever looks; for texts that are made at import."""


def about(number: int) -> str:
    """Show how many there are where there is little room; nothing where there are none."""
    for size, letter in ((1_000_000, "M"), (1000, "k")):
        if number >= 10 * size or (letter == "M" and number >= size):
            digits = 1 if number < 10 * size else 0
            # No space that would break, and none that a narrow cell has no room for.
            return f"{number_format(number // (size // 10) / 10, digits)}\u202f{letter}"
    return count(number)


def names(texts: Iterable[str]) -> str:
    """List names in one line, the first of them where there are many."""
    texts = list(texts)
    shown = ", ".join(texts[:_NAMES_SHOWN])
    more = len(texts) - _NAMES_SHOWN
    if more <= 0:
        return shown
    rest = ngettext("and %(number)d more", "and %(number)d more", more) % {"number": more}
    return f"{shown}, {rest}"


def utc(value: datetime) -> SafeString:
    """Show an occurrence in UTC."""
    return occurrence(value, ZoneInfo("UTC"))
