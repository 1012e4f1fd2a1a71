"""The one place that words the answers of ``core.explain``, for pages and commands alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import Any

from django.utils.translation import gettext as _
from django.views.debug import (
    SafeExceptionReporterFilter,
    get_default_exception_reporter_filter,
)

from ..core.explain import Cause, Row, Skip, Why

Worded = Callable[[Why, "Times"], str]


class Times:
    """Write instants as the clocks of a zone show them.

    Args:
        zone: of the reader.
    """

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone

    def __call__(self, instant: datetime) -> str:
        """Write an instant."""
        local = instant.astimezone(self._zone)
        text = f"{local:%Y-%m-%d %H:%M:%S}" if local.second else f"{local:%Y-%m-%d %H:%M}"
        return f"{text} {local.tzname()}"


def sentence(answer: Why, zone: tzinfo) -> str:
    """Put an answer into one sentence, in the active language."""
    times = Times(zone)
    words = _WORDED[answer.cause](answer, times)
    if answer.skip is None or answer.cause is Cause.SKIPPED_ONCE:
        return words
    return f"{words} {_skip(answer.skip.at, answer.skip, times)}"


def _broken(answer: Why, times: Times) -> str:
    return _("It does not run because it is broken: %(problem)s") % {"problem": answer.text}


def _disabled(answer: Why, times: Times) -> str:
    return _("It does not run because its declaration says that it is not enabled.")


def _paused(answer: Why, times: Times) -> str:
    pause = answer.pause
    by = pause.author if pause is not None and pause.author else _("someone")
    note = f" ({pause.note})" if pause is not None and pause.note else ""
    if answer.until is None:
        text = _("It does not run because %(who)s paused it, until someone resumes it%(note)s.")
        return text % {"who": by, "note": note}
    text = _("It does not run before %(until)s because %(who)s paused it%(note)s.")
    return text % {"who": by, "note": note, "until": times(answer.until)}


def _running(answer: Why, times: Times) -> str:
    if answer.row is None or answer.row.started_at is None:
        return _("It is running.")
    return _("It has been running since %(since)s.") % {"since": times(answer.row.started_at)}


def _process_gone(answer: Why, times: Times) -> str:
    since = "" if answer.until is None else times(answer.until)
    text = _(
        "Its run was interrupted: the process is gone since %(since)s. "
        "The run restarts as soon as a scheduler leads."
    )
    return text % {"since": since}


def _waits_for_a_worker(answer: Why, times: Times) -> str:
    return _("The run of %(at)s waits for a worker to fetch it.") % {"at": times(answer.at)}


def _waits(answer: Why, times: Times) -> str:
    return _("The run of %(at)s waits until the run before it has ended.") % {
        "at": times(answer.at)
    }


_OUTCOMES: dict[str, Callable[[], str]] = {
    "succeeded": lambda: _("and succeeded"),
    "failed": lambda: _("and failed"),
    "timed_out": lambda: _("and timed out"),
    "interrupted": lambda: _("and was interrupted"),
    "cancelled": lambda: _("and was cancelled"),
}
_BEGUN: dict[str, Callable[[], str]] = {
    "boot": lambda: _("as the task was new in that minute"),
    "retry": lambda: _("as the retry of a failure"),
    "orphaned": lambda: _("as the restart of an interrupted run"),
    "manual": lambda: _("as a person had asked for it"),
    "backfill": lambda: _("as a person had asked for runs of the past"),
}


def _how(answer: Why) -> str:
    row = answer.row
    ended = _OUTCOMES.get("" if row is None else row.outcome)
    return "" if ended is None else f" {ended()}"


def _ran(answer: Why, times: Times) -> str:
    row = answer.row
    begun = _BEGUN.get("" if row is None else row.reason)
    why = "" if begun is None else f", {begun()},"
    started = answer.at if row is None or row.started_at is None else row.started_at
    text = _("It ran at %(at)s%(why)s%(how)s.")
    return text % {"at": times(started), "why": why, "how": _how(answer)}


def _ran_late(answer: Why, times: Times) -> str:
    text = _("The occurrence of %(at)s ran late, at %(started)s,%(how)s.")
    started = "" if answer.until is None else times(answer.until)
    return text % {"at": times(answer.at), "started": started, "how": _how(answer)}


def _will_run(answer: Why, times: Times) -> str:
    return _("It will run at %(at)s.") % {"at": times(answer.at)}


def _requested(answer: Why, times: Times) -> str:
    return _("It will run in a moment, as a person asked for it at %(at)s.") % {
        "at": times(answer.at)
    }


def _not_due(answer: Why, times: Times) -> str:
    if answer.until is None:
        return _("It was not due: its schedule names no instant from then on.")
    if answer.previous is None:
        return _("It is not due before %(until)s.") % {"until": times(answer.until)}
    text = _("It is not due between %(previous)s and %(until)s.")
    return text % {"previous": times(answer.previous), "until": times(answer.until)}


def _never_due(answer: Why, times: Times) -> str:
    return _("It never runs: its schedule names no instant any more.")


def _retry_pending(answer: Why, times: Times) -> str:
    until = "" if answer.until is None else times(answer.until)
    return _("It failed, and waits for its retry at %(until)s.") % {"until": until}


def _retry_preempted(answer: Why, times: Times) -> str:
    until = "" if answer.until is None else times(answer.until)
    text = _("It failed, and its next occurrence at %(until)s comes before its retry.")
    return text % {"until": until}


def _never_ran(answer: Why, times: Times) -> str:
    until = "" if answer.until is None else times(answer.until)
    return _("It has not run yet. The next run starts at %(until)s.") % {"until": until}


def _last_ran(answer: Why, times: Times) -> str:
    row = answer.row
    at = answer.at if row is None or row.started_at is None else row.started_at
    until = "" if answer.until is None else times(answer.until)
    text = _("It last ran at %(at)s%(how)s. The next run starts at %(until)s.")
    return text % {"at": times(at), "how": _how(answer), "until": until}


def _gap_ahead(answer: Why, times: Times) -> str:
    lost = answer.text.replace("T", " ") or times(answer.at)
    if answer.until is None:
        text = _("The local time %(lost)s will not exist: the clocks go forward over it.")
        return text % {"lost": lost}
    text = _(
        "The local time %(lost)s will not exist: the clocks go forward over it. "
        "The next run starts at %(until)s."
    )
    return text % {"lost": lost, "until": times(answer.until)}


def _gap(answer: Why, times: Times) -> str:
    return _("The local time %(lost)s did not exist: the clocks went forward over it.") % {
        "lost": answer.text.replace("T", " ") or times(answer.at)
    }


def _fold(answer: Why, times: Times) -> str:
    first = "" if answer.previous is None else times(answer.previous)
    text = _("That local time happened twice, and only the first, %(first)s, counts.")
    return text % {"first": first}


def _run_named(answer: Why, times: Times) -> str:
    row = answer.row
    if row is None or row.started_at is None:
        return _("the run before")
    return _("the run of %(at)s (number %(key)d)") % {"at": times(row.started_at), "key": row.key}


def _overlap(answer: Why, times: Times) -> str:
    text = _("The occurrence of %(at)s was skipped because %(run)s was still going on.")
    return text % {"at": times(answer.at), "run": _run_named(answer, times)}


def _coalesced(answer: Why, times: Times) -> str:
    text = _("At %(at)s %(run)s was still going on; one run follows at its end.")
    return text % {"at": times(answer.at), "run": _run_named(answer, times)}


def _no_scheduler(answer: Why, times: Times) -> str:
    text = _("The occurrence of %(at)s was missed because no scheduler was at work.")
    return text % {"at": times(answer.at)}


def _was_broken(answer: Why, times: Times) -> str:
    text = _("The occurrence of %(at)s was missed because the task was broken.")
    return text % {"at": times(answer.at)}


def _held_up(answer: Why, times: Times) -> str:
    text = _("The occurrence of %(at)s was missed because the scheduler was held up.")
    return text % {"at": times(answer.at)}


def _no_leader(answer: Why, times: Times) -> str:
    text = _("It is due since %(at)s and does not run because no scheduler is at work.")
    return text % {"at": times(answer.at)}


def _late(answer: Why, times: Times) -> str:
    text = _("It is due since %(at)s and has not started yet, though a scheduler is at work.")
    return text % {"at": times(answer.at)}


def _not_registered(answer: Why, times: Times) -> str:
    since = "" if answer.until is None else times(answer.until)
    return _("It was not registered then, but only since %(since)s.") % {"since": since}


def _overridden(answer: Why, times: Times) -> str:
    since = "" if answer.until is None else times(answer.until)
    text = _("Its schedule was changed at %(since)s; nothing is owed for the time before.")
    return text % {"since": since}


def _forgotten(answer: Why, times: Times) -> str:
    if answer.until is None:
        return _("The occurrence of %(at)s is accounted for, but its row is gone.") % {
            "at": times(answer.at)
        }
    text = _("The history of the task begins at %(since)s; what was before is forgotten.")
    return text % {"since": times(answer.until)}


def _skipped(answer: Why, times: Times) -> str:
    text = _("The occurrence of %(at)s was skipped (%(reason)s).")
    return text % {"at": times(answer.at), "reason": answer.text}


def _excluded(answer: Why, times: Times) -> str:
    values = {"at": times(answer.at), "calendar": answer.text}
    if answer.until is None:
        return _("The calendar “%(calendar)s” excludes the day of %(at)s.") % values
    text = _("The calendar “%(calendar)s” excludes the day of %(at)s; it runs next at %(next)s.")
    return text % {**values, "next": times(answer.until)}


def _too_late(answer: Why, times: Times) -> str:
    text = _("The occurrence of %(at)s was missed, and too old to be caught up at %(found)s.")
    found = "" if answer.until is None else times(answer.until)
    return text % {"at": times(answer.at), "found": found}


def _let_pass(answer: Why, times: Times) -> str:
    return _skip(answer.at, answer.row or answer.skip, times)


def _skip(at: datetime, act: Row | Skip | None, times: Times) -> str:
    who = act.author if act is not None and act.author else _("someone")
    note = f" ({act.note})" if act is not None and act.note else ""
    text = _("The occurrence of %(at)s does not run because %(who)s skipped it%(note)s.")
    return text % {"at": times(at), "who": who, "note": note}


def _paused_by_failures(answer: Why, times: Times) -> str:
    pause = answer.pause
    note = f" ({pause.note})" if pause is not None and pause.note else ""
    text = _(
        "It does not run because failures in a row paused it, until someone resumes it%(note)s."
    )
    return text % {"note": note}


def _removed(answer: Why, times: Times) -> str:
    if answer.until is None:
        return _("The task was removed; its history is kept.")
    text = _("The task was removed at %(at)s; its history is kept.")
    return text % {"at": times(answer.until)}


_WORDED: dict[Cause, Worded] = {
    Cause.BROKEN: _broken,
    Cause.DISABLED: _disabled,
    Cause.PAUSED: _paused,
    Cause.RUNNING: _running,
    Cause.PROCESS_GONE: _process_gone,
    Cause.WAITS_FOR_A_WORKER: _waits_for_a_worker,
    Cause.WAITS: _waits,
    Cause.RAN: _ran,
    Cause.RAN_LATE: _ran_late,
    Cause.WILL_RUN: _will_run,
    Cause.REQUESTED: _requested,
    Cause.NOT_DUE: _not_due,
    Cause.NEVER_DUE: _never_due,
    Cause.RETRY_PENDING: _retry_pending,
    Cause.RETRY_PREEMPTED: _retry_preempted,
    Cause.NEVER_RAN: _never_ran,
    Cause.LAST_RAN: _last_ran,
    Cause.GAP: _gap,
    Cause.GAP_AHEAD: _gap_ahead,
    Cause.FOLD: _fold,
    Cause.OVERLAP: _overlap,
    Cause.COALESCED: _coalesced,
    Cause.NO_SCHEDULER: _no_scheduler,
    Cause.WAS_BROKEN: _was_broken,
    Cause.HELD_UP: _held_up,
    Cause.NO_LEADER: _no_leader,
    Cause.LATE: _late,
    Cause.NOT_REGISTERED: _not_registered,
    Cause.OVERRIDDEN: _overridden,
    Cause.FORGOTTEN: _forgotten,
    Cause.SKIPPED: _skipped,
    Cause.EXCLUDED: _excluded,
    Cause.TOO_LATE: _too_late,
    Cause.SKIPPED_ONCE: _let_pass,
    Cause.PAUSED_BY_FAILURES: _paused_by_failures,
    Cause.REMOVED: _removed,
}


def masked(value: Any) -> Any:
    """Replace values whose key says that they are secret, as Django's error pages do.

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
