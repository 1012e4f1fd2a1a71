"""Words, symbols and times as pages show them; colour only repeats them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from django.template.defaultfilters import linebreaksbr
from django.utils import timezone
from django.utils.dates import MONTHS, WEEKDAYS
from django.utils.formats import number_format
from django.utils.functional import lazy
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import get_language, gettext, ngettext, override
from django.utils.translation import gettext_lazy as _

from ..core.status import Status
from ..cron import CronExpression, describe
from ..cron.zones import in_zone
from ..formatting import format_civil, format_duration, format_elapsed, format_instant
from ..models import Outcome, TaskRun
from ..store.sentences import masked
from ..store.status import shown_outcome

STATUS_WORDS = {
    Status.BROKEN: _("Broken"),
    Status.INTERRUPTED: _("Interrupted"),
    Status.OVERDUE: _("Overdue"),
    Status.RETRYING: _("Retrying"),
    Status.RUNNING: _("Running"),
    Status.QUEUED: _("Queued"),
    Status.ACTIVE: _("Active"),
    Status.PAUSED: _("Paused"),
    Status.PAUSED_UNTIL: _("Paused until…"),
    Status.DISABLED: _("Disabled"),
}

REASON_WORDS = {
    "due": _("due"),
    "boot": _("boot"),
    "retry": _("retry"),
    "orphaned": _("restart after an interruption"),
    "manual": _("run requested by an operator"),
    "overlap_skip": _("previous run still running"),
    "disabled": _("paused"),
    "dst_skip": _("clock change"),
    "no_scheduler": _("no scheduler was running"),
    "broken": _("task was broken"),
    "held_up": _("scheduler was unresponsive"),
    "too_late": _("outside the catch-up window"),
    "excluded": _("excluded by a calendar"),
    "skip_next": _("skipped by an operator"),
    "backfill": _("backfill"),
    "coalesced": _("combined with a later run"),
}

_OUTCOME_SYMBOLS = {
    Outcome.WAITING: "▷",
    Outcome.RUNNING: "▶",
    Outcome.SUCCEEDED: "✔",
    Outcome.FAILED: "✖",
    Outcome.TIMED_OUT: "◷",
    Outcome.INTERRUPTED: "↯",
    Outcome.CANCELLED: "⊘",
    Outcome.SKIPPED: "↷",
    Outcome.MISSED: "○",
}

_NAMES_SHOWN = 10
_ERROR_LENGTH = 160
_UNITS = {"d": _("d"), "h": _("h"), "min": _("min"), "s": _("s"), "ms": _("ms")}


def badge(kind: str, symbol: str, text: str) -> SafeString:
    return format_html(
        '<span class="ddc-mark ddc-{}"><span aria-hidden="true">{}</span> {}</span>',
        kind.replace("_", "-"),
        symbol,
        text,
    )


def outcome(run: TaskRun, now: datetime) -> SafeString:
    """Return the outcome of a run with its symbol."""
    return outcome_badge(shown_outcome(run, now))


def outcome_badge(found: str) -> SafeString:
    symbol = _OUTCOME_SYMBOLS.get(Outcome(found), "") if found in Outcome else ""
    return badge(f"outcome-{found}", symbol, outcome_word(found))


def outcome_word(found: str) -> str:
    return str(Outcome(found).label) if found in Outcome else found


def legend(kinds: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the class and the word of each of the given outcomes."""
    shown = set(kinds)
    return ((each.value, str(each.label)) for each in Outcome if each.value in shown)


def reason(run: TaskRun) -> str:
    """Return why a run began or did not, with the number of occurrences if there are several."""
    word = str(REASON_WORDS.get(run.reason, run.reason))
    if run.count == 1:
        return word
    text = gettext("%(reason)s (%(number)d occurrences)")
    return text % {"reason": word, "number": run.count}


def moment(value: datetime) -> SafeString:
    """Return an instant in the zone of the project."""
    return _time(value, local(value))


def local(value: datetime) -> str:
    """Return an instant in the zone of the project as text, for titles."""
    return format_instant(value, timezone.get_current_timezone())


def clock(value: datetime, now: datetime) -> str:
    """Return the time of day of an instant, with its day unless that is today."""
    zone = timezone.get_current_timezone()
    at, today = in_zone(value, zone), in_zone(now, zone)
    return f"{at:%H:%M}" if at.date() == today.date() else f"{at:%m-%d %H:%M}"


def titled(whole: str, shown: str | None = None) -> SafeString:
    """Return the content of a cell that may be cut, with the whole text as its title."""
    return format_html('<span title="{}">{}</span>', whole, whole if shown is None else shown)


def titled_moment(value: datetime, shown: str, *words: str) -> SafeString:
    """Return the content of a cell about an instant, with words and the instant as its title."""
    return titled(", ".join([*words, local(value)]), _time(value, shown))


def error(text: str) -> SafeString | str:
    """Return the first line of an error, cut where it is long, with the whole as its title."""
    lines = text.strip().splitlines()
    if not lines:
        return ""
    line = Truncator(lines[0]).chars(_ERROR_LENGTH)
    return format_html('<span class="ddc-cut" title="{}">{}</span>', text.strip(), line)


def note(text: str) -> SafeString | str:
    return text and format_html('<span class="ddc-note">{}</span>', linebreaksbr(text))


def link(url: str, text: SafeString | str) -> SafeString | str:
    """Return a text as a link if there is a URL."""
    return format_html('<a href="{}">{}</a>', url, text) if url and text else text


def json_text(value: object) -> SafeString:
    """Return JSON without the values of keys that name secrets."""
    return preformatted(json.dumps(masked(value), indent=1, ensure_ascii=False, sort_keys=True))


def preformatted(text: str) -> SafeString:
    return format_html('<pre class="ddc-pre">{}</pre>', text)


def occurrence(value: datetime, zone: tzinfo) -> SafeString:
    """Return an occurrence in the zone of its schedule."""
    return _time(value, f"{format_civil(value, zone)} {zone}")


def _time(value: datetime, text: str) -> SafeString:
    machine = value.astimezone(UTC).isoformat()
    return format_html('<time class="ddc-time" datetime="{}">{}</time>', machine, text)


def relative(value: datetime, now: datetime) -> str:
    """Return the elapsed time between an instant and now, in its largest unit."""
    # In UTC, because wall-clock times would count the hour that a clock change skips.
    length = abs(value.astimezone(UTC) - now.astimezone(UTC))
    text = gettext("in %(distance)s") if value > now else gettext("%(distance)s ago")
    if length >= timedelta(minutes=1):
        return text % {"distance": span(length, units=1)}
    if value <= now:
        return gettext("just now")
    return text % {"distance": f"< {span(timedelta(minutes=1))}"}


def span(length: timedelta | None, units: int = 2) -> str:
    """Return a duration in the active language, or ""."""
    if length is None:
        return ""
    return format_duration(length, units, translate=_unit)


def _unit(unit: str) -> str:
    return str(_UNITS[unit])


def elapsed(length: timedelta) -> str:
    """Return a measured duration in the active language."""
    return format_elapsed(length, translate=_unit)


def words(expression: CronExpression) -> str:
    """Return a schedule in words of the active language."""
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
    """Return a number in groups of three digits, or "" for zero."""
    shown = number_format(number, force_grouping=True) if number else ""
    return f"{shown}+" if most is not None and number >= most else shown


grouped = lazy(count, str)
"""As ``count``, in the language of the request; for texts that are made at import."""


def about(number: int) -> str:
    """Return a number in at most five characters, or "" for zero."""
    for size, letter in ((1_000_000, "M"), (1000, "k")):
        if number >= 10 * size or (letter == "M" and number >= size):
            digits = 1 if number < 10 * size else 0
            # A narrow space that does not break, because the cells of a calendar are small.
            return f"{number_format(number // (size // 10) / 10, digits)}\u202f{letter}"
    return count(number)


def names(texts: Iterable[str]) -> str:
    """Return names in one line, the first ones only if there are many."""
    texts = list(texts)
    shown = ", ".join(texts[:_NAMES_SHOWN])
    more = len(texts) - _NAMES_SHOWN
    if more <= 0:
        return shown
    rest = ngettext("and %(number)d more", "and %(number)d more", more) % {"number": more}
    return f"{shown}, {rest}"
