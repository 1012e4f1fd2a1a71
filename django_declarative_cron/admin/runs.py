"""The history of runs: the list, and the page of one run with its traceback."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from ..models import ScheduledTask, TaskRun
from . import marks, story
from .filters import ReasonFilter
from .readonly import (
    DEEPEST_ROW,
    NOTHING,
    Columns,
    HistoryPaginator,
    ReadOnlyAdmin,
    first_line,
    instant,
)


@admin.display(description=_("outcome"))
def outcome(run: TaskRun) -> SafeString:
    """Show how the run ended."""
    return marks.outcome(run)


@admin.display(description=_("duration"))
def duration(run: TaskRun) -> str:
    """Show how long the run took."""
    return story.duration(run) or NOTHING


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


scheduled = instant(TaskRun, "scheduled_for")
scheduled_from = instant(TaskRun, "scheduled_from")
started = instant(TaskRun, "started_at")
finished = instant(TaskRun, "finished_at")


class TaskRunAdmin(ReadOnlyAdmin):
    """Show runs, and occurrences that did not run with the reason."""

    list_display: Columns = [
        outcome,
        "task_name",
        scheduled,
        started,
        duration,
        attempt,
        reason,
        error,
    ]
    list_display_links = ["task_name"]
    list_filter = ["outcome", ReasonFilter]
    search_fields = ["task_name"]
    search_help_text = format_lazy(
        _("By task name. The newest {number} rows that match can be paged through."),
        number=DEEPEST_ROW,
    )
    ordering = ["-id"]
    # Any other order would read and sort the whole history.
    sortable_by = ()
    paginator = HistoryPaginator
    fields: ClassVar[Columns] = [
        outcome,
        reason,
        scheduled_from,
        scheduled,
        started,
        finished,
        duration,
        attempt,
        "instance",
        whole_error,
    ]
    change_form_template = "admin/django_declarative_cron/taskrun/change_form.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[TaskRun]:
        runs: QuerySet[TaskRun] = super().get_queryset(request).defer("traceback", "detail")
        return runs

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        return {"traceback": row.traceback, "task_url": self._task_url(request, row)}

    def _task_url(self, request: HttpRequest, run: TaskRun) -> str:
        tasks = ScheduledTask.objects.filter(scheduler=run.scheduler_id, name=run.task_name)
        task = tasks.only("pk").first()
        return "" if task is None else self.page_of(request, task)
