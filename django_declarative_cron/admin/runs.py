"""The history of runs: the list, and the page of one run with its traceback."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from ..conf import options
from ..core.explain import Cause, Why
from ..models import ScheduledTask, TaskRun
from ..runtime.clock import system_clock
from ..store import database
from ..store.registration_sets import removal_of
from ..store.sentences import masked, sentence
from ..store.status import shown_end
from . import acts, formats, marks, story
from .acting import ActingAdmin
from .cancelling import CancellingAdmin
from .filters import ReasonFilter
from .frames import project_frames
from .portrait import Attempt, attempts_of
from .readonly import (
    DEEPEST_ROW,
    NOTHING,
    Columns,
    HistoryPaginator,
    first_line,
    instant,
    labelled,
)

_CHAIN = 50
_NAMES = 1000
"""Up to how many tasks a search looks for the runs of each."""


@admin.display(description=_("outcome"))
def outcome(run: TaskRun) -> SafeString:
    """Show how the run ended."""
    return marks.outcome(run, system_clock.now())


@admin.display(description=_("duration"))
def duration(run: TaskRun) -> str:
    """Show how long the run took."""
    return story.duration(run, system_clock.now()) or NOTHING


@admin.display(description=_("attempt"))
def attempt(run: TaskRun) -> str:
    """Show the number of the attempt; what did not run has none."""
    return str(run.attempt or NOTHING)


@admin.display(description=_("reason"))
def reason(run: TaskRun) -> str:
    """Word why the run began, or why nothing ran."""
    return story.reason(run)


@admin.display(description=_("error"))
def error(run: TaskRun) -> str:
    """Show the first line of the error."""
    return first_line(run.error) or NOTHING


@admin.display(description=_("error"))
def whole_error(run: TaskRun) -> str:
    """Show the error with its line breaks."""
    return format_html('<pre class="ddc-pre">{}</pre>', run.error) if run.error else NOTHING


@admin.display(description=_("lag"))
def lag(run: TaskRun) -> str:
    """Show how long after its occurrence the run started."""
    if run.started_at is None:
        return NOTHING
    return formats.span(max(run.started_at - run.scheduled_for, timedelta(0)))


@admin.display(description=_("result"))
def result(run: TaskRun) -> str:
    """Show what the callback returned; values under a secret's name are masked."""
    if run.result is None:
        return NOTHING
    text = json.dumps(masked(run.result), indent=1, ensure_ascii=False, sort_keys=True)
    return format_html('<pre class="ddc-pre">{}</pre>', text)


scheduled = instant(TaskRun, "scheduled_for")
scheduled_from = instant(TaskRun, "scheduled_from")
started = instant(TaskRun, "started_at")


@admin.display(description=_("finished at"))
def finished(run: TaskRun) -> str:
    """Show when the run ended."""
    end = shown_end(run, system_clock.now())
    return NOTHING if end is None else formats.moment(end)


class TaskRunAdmin(CancellingAdmin):
    """Show runs, and occurrences that did not run with the reason."""

    list_display: Columns = [
        outcome,
        "task_name",
        *map(labelled, (scheduled, started, duration, attempt, reason, error)),
    ]
    list_display_links = ["task_name"]
    list_filter = ["outcome", ReasonFilter]
    search_fields = ["task_name"]
    search_help_text = format_lazy(
        _(
            "By the name of a task, in part, or by the whole name of one that is declared no"
            " longer. The newest {number} rows that match can be paged through."
        ),
        number=formats.grouped(DEEPEST_ROW),
    )
    ordering = ["-id"]
    # Any other order would read and sort the whole history.
    sortable_by = ()
    paginator = HistoryPaginator
    fieldsets: ClassVar[Columns] = [
        (
            None,
            {
                # By this class its part of an open page is renewed.
                "classes": ["ddc-state"],
                "fields": [
                    outcome,
                    reason,
                    scheduled_from,
                    scheduled,
                    started,
                    lag,
                    finished,
                    duration,
                    attempt,
                    "instance",
                    result,
                    whole_error,
                ],
            },
        )
    ]
    change_list_template = "admin/django_declarative_cron/attended_list.html"
    change_form_template = "admin/django_declarative_cron/taskrun/change_form.html"

    class Media:
        js = ["django_declarative_cron/live.js"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[TaskRun]:
        """Ask for what the page shows, and for no more."""
        runs: QuerySet[TaskRun] = super().get_queryset(request)
        return runs.select_related("instance").defer(*story.LONG)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[TaskRun], search_term: str
    ) -> tuple[QuerySet[TaskRun], bool]:
        """Look for the tasks first: there are far fewer of them than runs."""
        if not search_term:
            return queryset, False
        declared = ScheduledTask.objects.filter(scheduler__deployment=options().DEPLOYMENT)
        for bit in search_term.split():
            declared = declared.filter(name__icontains=bit)
        whole = search_term.strip()
        names = list(declared.order_by().values_list("name", flat=True)[: _NAMES + 1])
        if len(names) <= _NAMES:
            return queryset.filter(task_name__in=[*names, whole]), False
        # So many tasks have runs among the newest; the database reads little beyond those.
        named = Q(task_name__in=declared.values("name")) | Q(task_name=whole)
        return queryset.filter(named), False

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Leave out what most runs have none of."""
        [(name, said)] = self.fieldsets
        rare = {scheduled_from: "scheduled_from", result: "result", whole_error: "error"}
        absent = [each for each, field in rare.items() if getattr(obj, field, None) in (None, "")]
        kept = [each for each in said["fields"] if each not in absent]
        return [(name, {**said, "fields": kept})]

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return what the page adds to the row."""
        tasks = ScheduledTask.objects.filter(scheduler=row.scheduler_id, name=row.task_name)
        task = tasks.only("pk").first()
        return {
            "is_in_progress": row.finished_at is None,
            "traceback": row.traceback,
            "frames": project_frames(row.traceback),
            "log": row.log,
            "output": row.output,
            "attempts": _chain(row),
            "removed": "" if task is not None else _removed(row),
            "task_url": "" if task is None else self.page_of(request, task),
            "cancel_url": self.cancel_url(request, row),
            "again_url": "" if task is None else self._again_url(request, task),
        }

    def _again_url(self, request: HttpRequest, task: ScheduledTask) -> str:
        if not self.shows(request, ScheduledTask):
            return ""
        page: Any = self.admin_site.get_model_admin(ScheduledTask)
        # A project may have a page of its own for tasks, without our acts.
        if not isinstance(page, ActingAdmin) or not page.may(request, acts.RUN):
            return ""
        return f"{self.address(ScheduledTask, 'act', acts.RUN.key)}?task={task.pk}"


def _removed(run: TaskRun) -> str:
    """Return when the task of a run was removed."""
    deployment, name = run.scheduler.deployment or "", run.task_name or ""
    removal = removal_of(database.alias(), deployment, name)
    if removal is None:
        return ""
    told = Why(Cause.REMOVED, system_clock.now(), until=removal.at)
    return sentence(told, timezone.get_current_timezone())


def _chain(run: TaskRun) -> list[Attempt]:
    """Return the attempts at the occurrence of a run, where there were several."""
    if run.started_at is None:
        return []
    attempts = TaskRun.objects.filter(
        scheduler=run.scheduler_id,
        task_name=run.task_name,
        scheduled_for=run.scheduled_for,
        started_at__isnull=False,
    )
    shown = attempts.select_related("instance").defer(*story.LONG)
    chain = list(shown.order_by("id")[:_CHAIN])
    return attempts_of(chain, system_clock.now()) if len(chain) > 1 else []
