"""Scheduled tasks: the list with one line for each, and the page of one task."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models.functions import Lower
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..core.declarations.declaration import OPERATING
from ..core.repeated_failures import is_suspicious
from ..core.status import Status
from ..models import Outcome, ScheduledTask
from ..runtime.clock import system_clock
from ..store.overview import Ran, oldest_recent, recent_runs
from ..store.queries import (
    Reading,
    ran_before_change,
    read,
    skips_at,
    with_runs,
)
from ..store.status import next_start_at, urgency
from . import badges, charts, filters, views
from .actions import TaskActionsMixin
from .base import NOTHING, TEMPLATES, Columns, LiveUpdatesMixin, instant, text_column
from .summary import ListSummary, is_scheduler_running, list_summary
from .task_detail import task_context

_SHOWN_AS_OPTIONS = ("overlap_policy", "dialect", "gap", "fold", "runner", "atomic", *OPERATING)


class TaskChangeList(ChangeList):
    """Read the newest runs of the tasks of one page together."""

    def get_ordering_field(self, field_name: Any) -> Any:
        # Expressions that depend on the present are made for each request.
        found: Any = super().get_ordering_field(field_name)
        return found(system_clock.now()) if callable(found) else found

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self._request, now = request, system_clock.now()
        # Subqueries on runs are evaluated for the rows of this page only, not for those before.
        keys = list(self.result_list.values_list("pk", flat=True))
        annotated = with_runs(self.root_queryset, now).annotate(oldest_recent=oldest_recent())
        found: dict[Any, Any] = annotated.in_bulk(keys)
        tasks = [found[key] for key in keys if key in found]
        oldest = {task.name or "": task.oldest_recent for task in tasks}
        runs = recent_runs(tasks, oldest, now)
        for task in tasks:
            task.recent, task.now = runs.get(task.name or "", []), now
        self.result_list: Any = tasks

    def summary(self) -> ListSummary:
        page: Any = self.model_admin
        return list_summary(page, self._request)


# --- columns of the list --------------------------------------------------------


def _reading(task: ScheduledTask) -> Reading:
    """Read a row once for all its columns, and for its page."""
    known: Reading | None = getattr(task, "_ddc_reading", None)
    if known is None:
        known = read(task, _now(task))
        task._ddc_reading = known  # type: ignore[attr-defined]
    return known


def _now(task: ScheduledTask) -> datetime:
    now: datetime | None = getattr(task, "now", None)
    return now or system_clock.now()


@admin.display(description=_("status"))
def status(task: ScheduledTask) -> SafeString:
    """Return the status with its symbol, and the problem or the end of a pause."""
    reading = _reading(task)
    found, more = reading.status, reading.problem or _suspicion(task)
    word = str(badges.STATUS_WORDS[found])
    if found is Status.PAUSED_UNTIL and task.paused_until is not None:
        word, more = gettext("Paused until"), badges.local(task.paused_until)
    mark = badges.badge(f"status-{found}", found.symbol, word)
    shown = format_html('{} <span class="ddc-more">{}</span>', mark, more) if more else mark
    return badges.titled(f"{word} {more}".strip(), shown)


# The rank depends on the present, so the list calls it for each request.
status.admin_order_field = urgency  # type: ignore[attr-defined]


def _suspicion(task: ScheduledTask) -> str:
    if not is_suspicious(task.interruptions):
        return ""
    text = gettext("the last %(count)d runs crashed their process")
    return text % {"count": task.interruptions}


name = text_column(ScheduledTask, "name")


@admin.display(description=_("schedule"), ordering="cron")
def schedule(task: ScheduledTask) -> SafeString:
    """Return the schedule as it is written, its zone, and the schedule in words."""
    found = _reading(task).schedule
    words = "" if found is None else badges.words(found.expression)
    shown = format_html(
        '<code>{}</code> {} <span class="ddc-more">{}</span>', task.cron, task.timezone, words
    )
    return badges.titled(f"{task.cron} {task.timezone} {words}", shown)


def _next(task: ScheduledTask) -> tuple[datetime, str] | None:
    """Return when a task runs next, and the same from now."""
    start = _reading(task).next_start
    if start is None:
        return None
    text = badges.relative(start.at, _now(task))
    return start.at, text if start.reason == "due" else gettext("retry %(when)s") % {"when": text}


@admin.display(description=_("next run"), ordering=next_start_at().asc(nulls_last=True))
def next_run(task: ScheduledTask) -> str:
    if (found := _next(task)) is None:
        return NOTHING
    at, text = found
    clock = badges.clock(at, _now(task))
    shown = format_html('{} <span class="ddc-quiet">{}</span>', text, clock)
    return badges.titled_moment(at, shown, text)


@admin.display(description=_("last run"), ordering="last_attempt_at")
def last_run(task: ScheduledTask) -> str:
    """Return the newest outcome, and when the run ended."""
    runs: list[Ran] = getattr(task, "recent", [])
    if not runs:
        return NOTHING
    newest, now = runs[-1], _now(task)
    at = newest.end or newest.start
    when = badges.relative(at, now)
    shown = format_html("{} {}", badges.outcome_badge(newest.outcome), when)
    return badges.titled_moment(at, shown, badges.outcome_word(newest.outcome), when)


@admin.display(description=_("recent runs"), ordering="failures")
def recent(task: ScheduledTask) -> SafeString | str:
    runs: list[Ran] = getattr(task, "recent", [])
    if not runs:
        return NOTHING
    kinds = [run.outcome for run in runs]
    numbers = {"good": kinds.count(Outcome.SUCCEEDED), "number": len(kinds)}
    return charts.strip(kinds, gettext("%(good)d of the last %(number)d succeeded") % numbers)


# --- fields of the page ---------------------------------------------------------


@admin.display(description=_("next run"))
def next_start(task: ScheduledTask) -> str:
    if (found := _next(task)) is None:
        return NOTHING
    at, text = found
    return format_html('{} <span class="ddc-more">{}</span>', badges.moment(at), text)


@admin.display(description=_("retry delay"))
def retry_delay(task: ScheduledTask) -> str:
    """Return the retry delay, or the retry policy that replaces it."""
    if task.retry_delay is not None:
        return badges.span(task.retry_delay)
    policy = _reading(task).retry
    return NOTHING if policy is None else policy.in_words()


def _timeout(task: ScheduledTask) -> timedelta | None:
    try:
        found = timedelta(seconds=_declared(task).get("timeout") or 0)
    except (TypeError, OverflowError):
        return None
    return found if found > timedelta(0) else None


@admin.display(description=_("timeout"))
def timeout(task: ScheduledTask) -> str:
    if _declared(task).get("timeout") and _timeout(task) is None:
        return gettext("cannot be read")
    return badges.span(_timeout(task)) or NOTHING


@admin.display(description=_("arguments"))
def arguments(task: ScheduledTask) -> str:
    found = _declared(task).get("args")
    return badges.json_text(found) if found else NOTHING


@admin.display(description=_("options"))
def options(task: ScheduledTask) -> str:
    declared = _declared(task)
    shown = {key: declared[key] for key in _SHOWN_AS_OPTIONS if key in declared}
    extra = declared.get("options")
    shown |= extra if isinstance(extra, dict) else {}
    return badges.json_text(shown) if shown else NOTHING


def _declared(task: ScheduledTask) -> dict[str, Any]:
    return task.declaration if isinstance(task.declaration, dict) else {}


@admin.display(description=_("last attempt at"))
def last_attempt_at(task: ScheduledTask) -> str:
    if ran_before_change(task):
        return gettext("not since the schedule changed")
    return _attempted(task)


@admin.display(description=_("pending retry until"))
def pending_retry(task: ScheduledTask) -> str:
    """Return when the pending retry may start, and the number of the attempt."""
    if task.pending_retry_until is None:
        return NOTHING
    start = _reading(task).next_start
    if start is not None and start.reason == "due":
        return gettext("none: the next occurrence comes first")
    at = badges.moment(task.pending_retry_until)
    if not task.attempt:
        return at
    policy = _reading(task).retry
    attempt = _attempt(task.attempt + 1, None if policy is None else policy.max_attempts)
    return format_html('{} <span class="ddc-more">{}</span>', at, attempt)


def _attempt(number: int, most: int | None) -> str:
    if most is None:
        return gettext("attempt %(number)d") % {"number": number}
    return gettext("attempt %(number)d of %(most)d") % {"number": number, "most": most}


@admin.display(description=_("actions in force"))
def actions_in_force(task: ScheduledTask) -> str:
    found = []
    if task.paused_since is not None and task.enabled:
        found.append(_pause(task.paused_since, task.paused_until))
    if task.run_requested_at is not None:
        at = badges.moment(task.run_requested_at)
        found.append(format_html(gettext("run requested at {}"), at))
    skips = skips_at(task, _now(task))
    if skips is not None:
        found.append(format_html(gettext("run at {} will be skipped"), badges.moment(skips)))
    return format_html_join("; ", "{}", ((each,) for each in found)) or gettext("None")


def _pause(since: datetime, until: datetime | None) -> SafeString:
    if until is None:
        return format_html(gettext("paused since {}"), badges.moment(since))
    text = gettext("paused since {} until {}")
    return format_html(text, badges.moment(since), badges.moment(until))


_attempted = instant(ScheduledTask, "last_attempt_at")
last_success = instant(ScheduledTask, "last_success_at")
registered = instant(ScheduledTask, "registered_at")


class ScheduledTaskAdmin(TaskActionsMixin, LiveUpdatesMixin):
    """Show the declaration, the state and the history of tasks, with buttons for actions."""

    list_display: Columns = [status, name, schedule, next_run, last_run, recent]
    list_display_links = [name]
    list_filter = [
        *(filters.StatusFilter, filters.PauseFilter, filters.LastOutcomeFilter),
        *(filters.FailedFilter, filters.AppFilter, filters.TagFilter, filters.ZoneFilter),
        *("enabled", "origin"),
    ]
    search_fields = ["name", "description"]
    ordering = [next_start_at().asc(nulls_last=True)]
    fieldsets: ClassVar[Columns] = [
        (
            _("State"),
            {
                # The script that updates the page finds the fieldset by this class.
                "classes": ["ddc-state"],
                "fields": [
                    *(status, next_start, last_attempt_at, last_success, pending_retry),
                    *(actions_in_force, "failures", "interruptions", "run_count", registered),
                ],
            },
        ),
        (
            _("Declaration"),
            {
                "description": _("Declared in settings.SCHEDULED_TASKS or registered over HTTP."),
                "fields": [
                    *("name", "origin", "registered_by", "description", schedule, "callback"),
                    *(arguments, retry_delay, timeout, "enabled", options),
                ],
            },
        ),
    ]
    rare: ClassVar[dict[Any, Callable[[Any], Any]]] = {
        "registered_by": attrgetter("registered_by"),
        "description": attrgetter("description"),
        timeout: lambda task: _declared(task).get("timeout"),
    }
    change_list_template = f"{TEMPLATES}/scheduledtask/change_list.html"
    change_form_template = f"{TEMPLATES}/scheduledtask/change_form.html"
    extra_views: ClassVar[dict[str, Callable[..., HttpResponse]]] = {
        "calendar": views.calendar_view,
        "expression": views.expression_view,
        "timeline": views.timeline_view,
    }

    def get_urls(self) -> list[URLPattern]:
        added = [
            path(
                f"{page}/",
                self.admin_site.admin_view(partial(view, self)),
                name=self.url_name(page),
            )
            for page, view in self.extra_views.items()
        ]
        return [*added, *super().get_urls()]

    def get_ordering(self, request: HttpRequest) -> Any:
        """Return the default order: tasks that need attention, then those that run next."""
        return [urgency(system_clock.now()), *self.ordering, Lower("name")]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[TaskChangeList]:
        return TaskChangeList

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        attended, now = is_scheduler_running(request), system_clock.now()
        reading = _reading(row)
        return {
            "detail": task_context(self, request, reading, now, is_attended=attended),
            "buttons": self.action_buttons(request, reading, now),
        }
