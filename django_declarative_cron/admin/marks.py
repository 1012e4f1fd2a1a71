"""Words and shapes for status, outcome and reason; colour only repeats them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from ..core.status import Status
from ..models import Outcome, ScheduledTask, TaskRun
from ..store.status import shown_outcome
from . import formats
from .standing import Standing

STATUS_WORDS = {
    Status.BROKEN: _("Broken"),
    Status.INTERRUPTED: _("Interrupted"),
    Status.RUNNING: _("Running"),
    Status.WAITS_FOR_A_WORKER: _("Waits for a worker"),
    Status.DISABLED: _("Disabled in its declaration"),
    Status.PAUSED: _("Paused"),
    Status.PAUSED_UNTIL: _("Paused until…"),
    Status.OVERDUE: _("Overdue"),
    Status.RETRYING: _("Retrying"),
    Status.ACTIVE: _("Active"),
}

REASON_WORDS = {
    "due": _("due"),
    "boot": _("boot"),
    "retry": _("retry"),
    "orphaned": _("restarted after an interruption"),
    "manual": _("asked for by a person"),
    "overlap_skip": _("the run before was still going on"),
    "disabled": _("paused"),
    "dst_skip": _("the clock was moved over it"),
    "no_scheduler": _("no scheduler was running"),
    "broken": _("the task was broken"),
    "held_up": _("the scheduler was held up"),
    "too_late": _("too old to be caught up"),
    "excluded": _("a calendar excludes the day"),
    "skip_next": _("skipped by a person"),
    "backfill": _("a run of the past"),
    "coalesced": _("covered by the run after it"),
}

STANDING_WORDS = {
    Standing.LEADS: _("Leads"),
    Standing.STANDS_BY: _("Stands by"),
    Standing.SUPERSEDED: _("Superseded by a newer set"),
    Standing.RUNS_ONLY: _("Runs tasks only"),
    Standing.STOPPING: _("Stopping"),
    Standing.HELD_UP: _("Alive, held up"),
    Standing.SILENT: _("Silent"),
    Standing.STOPPED: _("Stopped"),
    Standing.LEFT: _("Left with runs in flight"),
    Standing.LOST: _("Found dead"),
}

_STANDING_SYMBOLS = {
    Standing.LEADS: "★",
    Standing.STANDS_BY: "●",
    Standing.SUPERSEDED: "◌",
    Standing.RUNS_ONLY: "▷",
    Standing.STOPPING: "◧",
    Standing.HELD_UP: "◔",
    Standing.SILENT: "▲",
    Standing.STOPPED: "■",
    Standing.LEFT: "↯",
    Standing.LOST: "✖",
}

_OUTCOME_SYMBOLS = {
    Outcome.WAITING: "⧗",
    Outcome.RUNNING: "▶",
    Outcome.SUCCEEDED: "✔",
    Outcome.FAILED: "✖",
    Outcome.TIMED_OUT: "◷",
    Outcome.INTERRUPTED: "↯",
    Outcome.CANCELLED: "⊘",
    Outcome.SKIPPED: "↷",
    Outcome.MISSED: "○",
}


def status(found: Status, task: ScheduledTask) -> SafeString:
    """Show the status word of a task with its shape."""
    if found is Status.PAUSED_UNTIL and task.paused_until is not None:
        mark = _mark(f"status-{found}", found.symbol, str(_("Paused until")))
        end = formats.moment(task.paused_until)
        return format_html('{}<span class="ddc-more">{}</span>', mark, end)
    return _mark(f"status-{found}", found.symbol, str(STATUS_WORDS[found]))


def outcome(run: TaskRun, now: datetime) -> SafeString:
    """Show how a run ended with its shape."""
    found = shown_outcome(run, now)
    symbol = _OUTCOME_SYMBOLS.get(Outcome(found), "") if found in Outcome else ""
    return _mark(f"outcome-{found}", symbol, outcome_word(found))


def outcome_word(found: str) -> str:
    """Return the word of an outcome."""
    return str(Outcome(found).label) if found in Outcome else found


def legend() -> Iterator[tuple[str, str, str]]:
    """Return the class, the shape and the word of each outcome."""
    for each in Outcome:
        yield each.value, _OUTCOME_SYMBOLS.get(each, ""), str(each.label)


def standing(found: Standing) -> SafeString:
    """Show what a scheduler process is to its deployment."""
    return _mark(f"standing-{found}", _STANDING_SYMBOLS[found], str(STANDING_WORDS[found]))


def reason(run: TaskRun) -> str:
    """Word why a run began, or why an occurrence did not run."""
    return str(REASON_WORDS.get(run.reason, run.reason))


def _mark(kind: str, symbol: str, text: str) -> SafeString:
    return format_html(
        '<span class="ddc-mark ddc-{}"><span aria-hidden="true">{}</span> {}</span>',
        kind.replace("_", "-"),
        symbol,
        text,
    )
