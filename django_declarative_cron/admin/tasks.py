"""Scheduled tasks: the list, and the page of one task."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..conf import options as declared_options
from ..core.declarations.operating import KEYS as OPERATING
from ..core.repeated_failures import is_suspicious
from ..models import ScheduledTask
from ..runtime.clock import system_clock
from ..store.queries import Reading, most_attempts, ran_before_change, read, read_retry, skips_at
from ..store.sentences import masked
from ..store.status import next_start_at, patience
from . import acts, formats, marks, overview, story
from .extras import ExtraPagesAdmin
from .filters import (
    AppFilter,
    FailedFilter,
    LastOutcomeFilter,
    PauseFilter,
    StatusFilter,
    TagFilter,
    ZoneFilter,
)
from .readonly import NOTHING, Columns, instant, labelled
from .tasklist import TaskChangeList, recent

_SHOWN_AS_TEXT = ("overlap_policy", "dialect", "gap", "fold", "runner", "atomic", *OPERATING)


def _reading(task: ScheduledTask) -> Reading:
    """Understand a row once for all its columns."""
    known: Reading | None = getattr(task, "_ddc_reading", None)
    if known is None:
        known = read(task, system_clock.now())
        task._ddc_reading = known  # type: ignore[attr-defined]
    return known


@admin.display(description=_("status"))
def status(task: ScheduledTask) -> SafeString:
    """Show the status word, and what is wrong where something is."""
    reading = _reading(task)
    mark = marks.status(reading.status, task)
    wrong = reading.problem or _suspicion(task)
    if not wrong:
        return mark
    return format_html('{}<span class="ddc-more">{}</span>', mark, wrong)


def _suspicion(task: ScheduledTask) -> str:
    if not is_suspicious(task.interruptions):
        return ""
    text = gettext("its last %(count)d runs ended with their process")
    return text % {"count": task.interruptions}


@admin.display(description=_("schedule"), ordering="cron")
def schedule(task: ScheduledTask) -> SafeString:
    """Show the schedule in plain words, as it is written, and its zone."""
    found = _reading(task).schedule
    words = "" if found is None else formats.words(found.expression)
    return format_html(
        '{}<span class="ddc-more"><code>{}</code> {}</span>',
        words,
        task.cron,
        task.timezone,
    )


@admin.display(description=_("next run"), ordering=next_start_at().asc(nulls_last=True))
def next_run(task: ScheduledTask) -> str:
    """Show when the task starts next and how far away that is; nothing where it does not."""
    now = system_clock.now()
    start = _reading(task).next_start
    if start is None:
        return NOTHING
    distance = formats.relative(start.at, now)
    return format_html(
        '{}<span class="ddc-more">{}</span>',
        formats.moment(start.at),
        distance if start.reason == "due" else gettext("retry, %(when)s") % {"when": distance},
    )


@admin.display(description=_("retry delay"))
def retry_delay(task: ScheduledTask) -> str:
    """Show the retry delay, or the policy that stands in its place."""
    if task.retry_delay is not None:
        return formats.span(task.retry_delay)
    policy = read_retry(task)
    return NOTHING if policy is None else policy.in_words()


@admin.display(description=_("arguments"))
def arguments(task: ScheduledTask) -> str:
    """Show the arguments; values under a secret's name are masked."""
    return _json(_declared(task).get("args"))


@admin.display(description=_("options"))
def options(task: ScheduledTask) -> str:
    """Show everything else that was declared."""
    declared = _declared(task)
    shown = {key: declared[key] for key in _SHOWN_AS_TEXT if key in declared}
    extra = declared.get("options")
    return _json(shown | extra if isinstance(extra, dict) else shown)


def _declared(task: ScheduledTask) -> dict[str, Any]:
    return task.declaration if isinstance(task.declaration, dict) else {}


def _json(value: Any) -> str:
    if not value:
        return NOTHING
    text = json.dumps(masked(value), indent=1, ensure_ascii=False, sort_keys=True)
    return format_html('<pre class="ddc-pre">{}</pre>', text)


_attempted = instant(ScheduledTask, "last_attempt_at")


@admin.display(description=_("last attempt at"), ordering="last_attempt_at")
def last_attempt_at(task: ScheduledTask) -> str:
    """Show the newest attempt under the schedule that is declared."""
    if ran_before_change(task):
        return gettext("not since its schedule changed")
    return _attempted(task)


last_success = instant(ScheduledTask, "last_success_at")


@admin.display(description=_("pending retry until"), ordering="pending_retry_until")
def pending_retry(task: ScheduledTask) -> str:
    """Show when the pending retry may start, and which attempt of how many it is."""
    if task.pending_retry_until is None:
        return NOTHING
    start = _reading(task).next_start
    if start is not None and start.reason == "due":
        return gettext("none: the next occurrence comes first")
    if not task.attempt:
        return formats.moment(task.pending_retry_until)
    return format_html(
        '{}<span class="ddc-more">{}</span>',
        formats.moment(task.pending_retry_until),
        _attempt(task.attempt + 1, most_attempts(task)),
    )


def _attempt(number: int, most: int | None) -> str:
    if most is None:
        return gettext("attempt %(number)d") % {"number": number}
    return gettext("attempt %(number)d of %(most)d") % {"number": number, "most": most}


@admin.display(description=_("overridden"))
def overridden(task: ScheduledTask) -> str:
    """Show what of the declaration people have set aside for a time."""
    said = []
    if task.paused_since is not None and task.enabled:
        said.append(_between(task.paused_since, task.paused_until))
    if task.run_requested_at is not None:
        said.append(
            format_html(gettext("run requested at {}"), formats.moment(task.run_requested_at))
        )
    skips = skips_at(task, system_clock.now())
    if skips is not None:
        said.append(format_html(gettext("skips its run of {}"), formats.moment(skips)))
    return format_html_join("; ", "{}", ((each,) for each in said)) or gettext(
        "by nobody: it runs as declared"
    )


def _between(since: datetime, until: datetime | None) -> SafeString:
    if until is None:
        return format_html(gettext("paused since {}"), formats.moment(since))
    text = gettext("paused since {} until {}")
    return format_html(text, formats.moment(since), formats.moment(until))


registered = instant(ScheduledTask, "registered_at")


class ScheduledTaskAdmin(ExtraPagesAdmin):
    """Show what is declared and what became of it; people act by the buttons."""

    list_display: Columns = [
        status,
        "name",
        recent,
        schedule,
        *map(labelled, (next_run, last_attempt_at, last_success, pending_retry)),
    ]
    list_display_links = ["name"]
    list_filter = [
        StatusFilter,
        PauseFilter,
        LastOutcomeFilter,
        FailedFilter,
        AppFilter,
        TagFilter,
        ZoneFilter,
        "enabled",
        "origin",
    ]
    search_fields = ["name", "description"]
    ordering = [next_start_at().asc(nulls_last=True), "name"]
    fieldsets: ClassVar[Columns] = [
        (
            _("State"),
            {
                # By this class its part of an open page is renewed.
                "classes": ["ddc-state"],
                "fields": [
                    status,
                    next_run,
                    last_attempt_at,
                    last_success,
                    pending_retry,
                    overridden,
                    "failures",
                    "interruptions",
                    "run_count",
                    registered,
                ],
            },
        ),
        (
            _("Declaration"),
            {
                "description": _(
                    "Declared in settings.SCHEDULED_TASKS, or registered over HTTP; changed there."
                ),
                "fields": [
                    "name",
                    "origin",
                    "registered_by",
                    "description",
                    schedule,
                    "callback",
                    arguments,
                    retry_delay,
                    "enabled",
                    options,
                ],
            },
        ),
    ]
    change_list_template = "admin/django_declarative_cron/scheduledtask/change_list.html"
    change_form_template = "admin/django_declarative_cron/scheduledtask/change_form.html"

    class Media:
        js = ["django_declarative_cron/live.js"]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[TaskChangeList]:
        """Choose the list."""
        return TaskChangeList

    def is_attended(self, request: HttpRequest, within: timedelta) -> bool:
        """Return whether a scheduler was heard of lately."""
        # The overview asks for more with one query; the banner needs no second one.
        found = overview.health_of(request)
        return found is not None and found.silence <= within

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return what the page adds to the row."""
        attended = self.is_attended(request, patience(declared_options().LEASE))
        told = story.of(self, request, row, system_clock.now(), is_attended=attended)
        buttons = self._buttons(request, row)
        of_a_retry = {act.key for act in acts.OF_A_RETRY}
        return {
            "buttons": [each for each in buttons if each["key"] not in of_a_retry],
            "retry_buttons": [each for each in buttons if each["key"] in of_a_retry],
            "story": told,
            "portrait": told["portrait"],
        }

    def _buttons(self, request: HttpRequest, task: ScheduledTask) -> list[dict[str, Any]]:
        return [
            {
                "key": act.key,
                "label": act.label,
                "url": f"{self.address(ScheduledTask, 'act', act.key)}?task={task.pk}",
            }
            for act in acts.fitting(task, system_clock.now())
            if self.may(request, act)
        ]
