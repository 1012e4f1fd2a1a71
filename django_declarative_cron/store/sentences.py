"""The texts for the answers of ``core.explain``, for pages and commands alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from functools import partial
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _
from django.views.debug import (
    SafeExceptionReporterFilter,
    get_default_exception_reporter_filter,
)

from ..core.explain import Answer, Cause
from ..formatting import format_instant

Times = Callable[[datetime], str]
"""Writes an instant for a reader."""

_TEXTS = {
    Cause.BROKEN: _("It does not run because it is broken: %(problem)s"),
    Cause.DISABLED: _("It does not run because its declaration says that it is not enabled."),
    Cause.PAUSED: _("It does not run before %(until)s because %(who)s paused it%(note)s."),
    Cause.RUNNING: _("It has been running since %(since)s."),
    Cause.PROCESS_GONE: _(
        "Its run was interrupted: the process is gone since %(since)s. "
        "The run restarts as soon as a scheduler leads."
    ),
    Cause.WAITS_FOR_A_WORKER: _("The run of %(at)s is queued until a worker fetches it."),
    Cause.WAITS: _("The run of %(at)s is queued until the run before it has ended."),
    Cause.RAN: _("It ran at %(at)s%(why)s%(how)s."),
    Cause.RAN_LATE: _("The occurrence of %(at)s ran late, at %(started)s,%(how)s."),
    Cause.WILL_RUN: _("It will run at %(at)s."),
    Cause.REQUESTED: _("It will run in a moment, as a person asked for it at %(at)s."),
    Cause.NOT_DUE: _("It is not due between %(previous)s and %(until)s."),
    Cause.NEVER_DUE: _("It never runs: its schedule names no instant any more."),
    Cause.RETRY_PENDING: _("It failed, and waits for its retry at %(until)s."),
    Cause.RETRY_PREEMPTED: _(
        "It failed, and its next occurrence at %(until)s comes before its retry."
    ),
    Cause.NEVER_RAN: _("It has not run yet. The next run starts at %(until)s."),
    Cause.LAST_RAN: _("It last ran at %(at)s%(how)s. The next run starts at %(until)s."),
    Cause.GAP: _("The local time %(lost)s did not exist: the clocks went forward over it."),
    Cause.GAP_AHEAD: _(
        "The local time %(lost)s will not exist: the clocks go forward over it. "
        "The next run starts at %(until)s."
    ),
    Cause.FOLD: _("That local time happened twice, and only the first, %(first)s, counts."),
    Cause.OVERLAP: _("The occurrence of %(at)s was skipped because %(run)s was still going on."),
    Cause.COALESCED: _("At %(at)s %(run)s was still going on; one run follows at its end."),
    Cause.NO_SCHEDULER: _("The occurrence of %(at)s was missed because no scheduler was at work."),
    Cause.WAS_BROKEN: _("The occurrence of %(at)s was missed because the task was broken."),
    Cause.HELD_UP: _("The occurrence of %(at)s was missed because the scheduler was held up."),
    Cause.NO_LEADER: _("It is due since %(at)s and does not run because no scheduler is at work."),
    Cause.LATE: _("It is due since %(at)s and has not started yet, though a scheduler is at work."),
    Cause.NOT_REGISTERED: _("It was not registered then, but only since %(since)s."),
    Cause.OVERRIDDEN: _(
        "Its schedule was changed at %(since)s; nothing is owed for the time before."
    ),
    Cause.FORGOTTEN: _(
        "The history of the task begins at %(since)s; what was before is forgotten."
    ),
    Cause.SKIPPED: _("The occurrence of %(at)s was skipped (%(reason)s)."),
    Cause.CANCELLED: _("The occurrence of %(at)s was cancelled before it started."),
    Cause.EXCLUDED: _(
        "The calendar “%(calendar)s” excludes the day of %(at)s; it runs next at %(next)s."
    ),
    Cause.TOO_LATE: _(
        "The occurrence of %(at)s was missed, and too old to be caught up at %(found)s."
    ),
    Cause.SKIPPED_ONCE: _(
        "The occurrence of %(at)s does not run because %(who)s skipped it%(note)s."
    ),
    Cause.PAUSED_BY_FAILURES: _(
        "It does not run because failures in a row paused it, until someone resumes it%(note)s."
    ),
    Cause.REMOVED: _("The task was removed at %(at)s; its history is kept."),
}

_TEXTS_WITHOUT_UNTIL = {
    Cause.PAUSED: _("It does not run because %(who)s paused it, until someone resumes it%(note)s."),
    Cause.NOT_DUE: _("It was not due: its schedule names no instant from then on."),
    Cause.GAP_AHEAD: _("The local time %(lost)s will not exist: the clocks go forward over it."),
    Cause.FORGOTTEN: _("The occurrence of %(at)s is accounted for, but its row is gone."),
    Cause.EXCLUDED: _("The calendar “%(calendar)s” excludes the day of %(at)s."),
    Cause.REMOVED: _("The task was removed; its history is kept."),
}

_RUNNING = _("It is running.")
_NOT_DUE_BEFORE = _("It is not due before %(until)s.")

_OUTCOMES = {
    "succeeded": _("and succeeded"),
    "failed": _("and failed"),
    "timed_out": _("and timed out"),
    "interrupted": _("and was interrupted"),
    "cancelled": _("and was cancelled"),
}
_REASONS = {
    "boot": _("as the task was new in that minute"),
    "retry": _("as the retry of a failure"),
    "orphaned": _("as the restart of an interrupted run"),
    "manual": _("as a person had asked for it"),
    "backfill": _("as a person had asked for runs of the past"),
}


def sentence(answer: Answer, zone: tzinfo) -> str:
    """Put an answer into one sentence, in the active language."""
    times = partial(format_instant, zone=zone)
    text = gettext(_text_of(answer)) % _values(answer, times)
    if answer.skip is None or answer.cause is Cause.SKIPPED_ONCE:
        return text
    skip = {"at": times(answer.skip.at), **_act(answer.skip)}
    return f"{text} {gettext(_TEXTS[Cause.SKIPPED_ONCE]) % skip}"


def _text_of(answer: Answer) -> str:
    cause = answer.cause
    if cause is Cause.RUNNING and _started_at(answer) is None:
        return _RUNNING
    if answer.until is None:
        return _TEXTS_WITHOUT_UNTIL.get(cause, _TEXTS[cause])
    if cause is Cause.NOT_DUE and answer.previous is None:
        return _NOT_DUE_BEFORE
    return _TEXTS[cause]


def _values(answer: Answer, times: Times) -> dict[str, str]:
    """Return the values by all names that the texts use for them."""
    row, cause, started = answer.row, answer.cause, _started_at(answer)
    until = "" if answer.until is None else times(answer.until)
    at, since = times(answer.at), until
    if cause in (Cause.RAN, Cause.LAST_RAN) and started is not None:
        at = times(started)
    elif cause is Cause.RUNNING and started is not None:
        since = times(started)
    elif cause is Cause.REMOVED:
        at = until
    previous = "" if answer.previous is None else times(answer.previous)
    ended = _OUTCOMES.get("" if row is None else row.outcome)
    begun = _REASONS.get("" if row is None else row.reason)
    run = gettext("the run before")
    if row is not None and started is not None:
        values = {"at": times(started), "key": row.key}
        run = gettext("the run of %(at)s (number %(key)d)") % values
    is_skip = cause is Cause.SKIPPED_ONCE
    return {
        "at": at,
        "since": since,
        "previous": previous,
        "first": previous,
        "run": run,
        **dict.fromkeys(("until", "started", "found", "next"), until),
        **dict.fromkeys(("problem", "reason", "calendar"), answer.text),
        "lost": answer.text.replace("T", " ") or times(answer.at),
        "how": "" if ended is None else f" {gettext(ended)}",
        "why": "" if begun is None else f", {gettext(begun)},",
        **_act(row or answer.skip if is_skip else answer.pause),
    }


def _act(act: Any) -> dict[str, str]:
    author, note = getattr(act, "author", ""), getattr(act, "note", "")
    return {"who": author or gettext("someone"), "note": f" ({note})" if note else ""}


def _started_at(answer: Answer) -> datetime | None:
    return None if answer.row is None else answer.row.started_at


def masked(value: Any) -> Any:
    """Replace values with a key that marks them as secret, as Django's error pages do.

    The project's ``DEFAULT_EXCEPTION_REPORTER_FILTER`` says which keys those are.
    """
    reporter = _reporter()
    if isinstance(value, Mapping):
        return {key: masked(reporter.cleanse_setting(key, each)) for key, each in value.items()}
    if isinstance(value, list):
        return [masked(each) for each in value]
    return value


def has_masks(value: Any) -> bool:
    """Return whether a mask is where a secret should be, as in an answer that is sent back."""
    reporter = _reporter()
    if isinstance(value, Mapping):
        hidden = reporter.cleansed_substitute
        return any(
            has_masks(each) or each == hidden == reporter.cleanse_setting(key, each)
            for key, each in value.items()
        )
    return isinstance(value, list) and any(map(has_masks, value))


def _reporter() -> Any:
    reporter: Any = get_default_exception_reporter_filter()
    if isinstance(reporter, SafeExceptionReporterFilter):
        return reporter
    # The project's filter may be of any kind, and secrets are masked all the same.
    return SafeExceptionReporterFilter()
