"""The history of runs: the list, the page of one run with its traceback, and its cancellation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..conf import options
from ..core.explain import Answer, Cause
from ..models import Outcome, ScheduledTask, TaskRun
from ..runtime.clock import system_clock
from ..store import database, manual_runs
from ..store.manual_runs import CANCELLABLE
from ..store.manual_runs import Effect as Cancelled
from ..store.registration_sets import removal_of
from ..store.sentences import sentence
from ..store.status import shown_end
from . import actions, badges, task_detail
from .base import (
    DEEPEST_ROW,
    HIGHEST_KEY,
    NOTHING,
    TEMPLATES,
    Columns,
    HistoryPaginator,
    LiveUpdatesMixin,
    instant,
    text_column,
)
from .filters import OutcomeFilter, ReasonFilter
from .task_detail import Table, attempts

_ATTEMPTS = 50
_NAMES = 1000
"""If more tasks match a search, their runs are found with a subquery."""

_CANCEL = _("Cancel run")
_ENDED = _("The run has ended, or its cancellation was requested before.")
_CANCELLED = {
    Cancelled.ASKED: _("Cancellation requested."),
    Cancelled.ENDED: _("The run had not started. It was cancelled."),
    Cancelled.NONE: _ENDED,
}

# --- columns --------------------------------------------------------------------


@admin.display(description=_("outcome"))
def outcome(run: TaskRun) -> SafeString:
    return badges.outcome(run, system_clock.now())


@admin.display(description=_("duration"))
def duration(run: TaskRun) -> str:
    return task_detail.duration(run, system_clock.now()) or NOTHING


@admin.display(description=_("attempt"))
def attempt(run: TaskRun) -> str:
    return str(run.attempt or NOTHING)


@admin.display(description=_("reason"))
def reason(run: TaskRun) -> str:
    return badges.reason(run)


@admin.display(description=_("error"))
def error(run: TaskRun) -> str:
    return badges.error(run.error) or NOTHING


@admin.display(description=_("error"))
def whole_error(run: TaskRun) -> str:
    return badges.preformatted(run.error) if run.error else NOTHING


@admin.display(description=_("lag"))
def lag(run: TaskRun) -> str:
    if run.started_at is None:
        return NOTHING
    return badges.elapsed(run.started_at - run.scheduled_for)


@admin.display(description=_("result"))
def result(run: TaskRun) -> str:
    return NOTHING if run.result is None else badges.json_text(run.result)


@admin.display(description=_("finished at"))
def finished(run: TaskRun) -> str:
    end = shown_end(run, system_clock.now())
    return NOTHING if end is None else badges.moment(end)


task_name = text_column(TaskRun, "task_name")
scheduled_for = instant(TaskRun, "scheduled_for")
due_from = instant(TaskRun, "scheduled_from")
started = instant(TaskRun, "started_at")


class TaskRunAdmin(LiveUpdatesMixin):
    """Show runs, and occurrences that did not run with the reason."""

    list_display: Columns = [
        *(outcome, task_name, scheduled_for, duration, attempt, reason, error, started),
    ]
    list_display_links = [task_name]
    list_filter = [OutcomeFilter, ReasonFilter]
    search_fields = ["task_name"]
    search_help_text = format_lazy(
        _(
            "Part of the name of a task, or the whole name of a removed one."
            " Shows the newest {number} matching rows."
        ),
        number=badges.grouped(DEEPEST_ROW),
    )
    ordering = ["-id"]
    # Any other order would read and sort the whole history.
    sortable_by = ()
    paginator = HistoryPaginator
    fieldsets: ClassVar[Columns] = [
        (
            None,
            {
                # The script that updates the page finds the fieldset by this class.
                "classes": ["ddc-state"],
                "fields": [
                    *(outcome, reason, due_from, scheduled_for, started, lag, finished, duration),
                    *(attempt, "instance", result, whole_error),
                ],
            },
        )
    ]
    rare: ClassVar[dict[Any, Callable[[Any], Any]]] = {
        due_from: attrgetter("scheduled_from"),
        result: attrgetter("result"),
        whole_error: attrgetter("error"),
    }
    change_list_template = f"{TEMPLATES}/change_list.html"
    change_form_template = f"{TEMPLATES}/taskrun/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.writing_view(self.cancel_view)
        return [path("<int:key>/cancel/", view, name=self.url_name("cancel")), *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[TaskRun]:
        runs: QuerySet[TaskRun] = super().get_queryset(request)
        return runs.select_related("instance").defer(*task_detail.LONG)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[TaskRun], search_term: str
    ) -> tuple[QuerySet[TaskRun], bool]:
        """Search the tasks first, because there are far fewer tasks than runs."""
        if not search_term:
            return queryset, False
        declared = ScheduledTask.objects.filter(scheduler__deployment=options().DEPLOYMENT)
        for bit in search_term.split():
            declared = declared.filter(name__icontains=bit)
        whole = search_term.strip()
        names = list(declared.order_by().values_list("name", flat=True)[: _NAMES + 1])
        if len(names) <= _NAMES:
            return queryset.filter(task_name__in=[*names, whole]), False
        matching = Q(task_name__in=declared.values("name")) | Q(task_name=whole)
        return queryset.filter(matching), False

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        tasks = ScheduledTask.objects.filter(scheduler=row.scheduler_id, name=row.task_name)
        task = tasks.only("pk").first()
        return {
            "is_in_progress": row.finished_at is None,
            "frames": project_frames(row.traceback),
            "texts": [
                ("traceback", gettext("Traceback"), row.traceback),
                ("log", gettext("End of the log"), row.log),
                ("output", gettext("End of the output"), row.output),
            ],
            "attempts": _attempts_at(row),
            "removed": "" if task is not None else _removed(row),
            "task_url": "" if task is None else self.page_url(request, task),
            "cancel_url": self._cancel_url(request, row),
            "again_url": "" if task is None else self._again_url(request, task),
        }

    def _again_url(self, request: HttpRequest, task: ScheduledTask) -> str:
        if not self.shows(request, ScheduledTask):
            return ""
        page: Any = self.admin_site.get_model_admin(ScheduledTask)
        # A project may have registered a page of its own, without our actions.
        if not isinstance(page, actions.TaskActionsMixin):
            return ""
        return page.action_url(actions.RUN, task) if page.allows(request, actions.RUN) else ""

    # --- cancellation -----------------------------------------------------------

    def _cancel_url(self, request: HttpRequest, run: TaskRun) -> str:
        if run.outcome not in CANCELLABLE or not self._may_cancel(request):
            return ""
        return self.url(TaskRun, "cancel", run.pk)

    def _may_cancel(self, request: HttpRequest) -> bool:
        return self.may_act(request, "cancel_taskrun") and self.has_view_permission(request)

    def cancel_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Show the confirmation page, and cancel the run once it is confirmed."""
        if not self._may_cancel(request):
            raise PermissionDenied
        run = self.get_queryset(request).filter(pk=key).first() if key <= HIGHEST_KEY else None
        if run is None:
            raise Http404
        form = actions.ActionForm(request.POST if request.method == "POST" else None)
        if not form.is_bound or not form.is_valid():
            return self._confirm(request, run, form)
        author = actions.author_of(request, form)
        effect = manual_runs.cancel(run, author, system_clock.database_time())
        if effect is not Cancelled.NONE:
            self.log_action(request, [run], _CANCEL, author.note)
        level = messages.WARNING if effect is Cancelled.NONE else messages.SUCCESS
        self.message_user(request, str(_CANCELLED[effect]), level)
        return HttpResponseRedirect(self.url(TaskRun, "change", run.pk))

    def _confirm(
        self, request: HttpRequest, run: TaskRun, form: actions.ActionForm
    ) -> HttpResponse:
        can_end = run.outcome in CANCELLABLE and run.cancel_requested_at is None
        text = gettext("The callback is notified. The run ends when its callback or runner does.")
        if not can_end:
            text = str(_ENDED)
        elif run.outcome == Outcome.WAITING:
            text = gettext("Ends immediately, because it has not started.")
        context = {
            "question": gettext("Cancel this run?"),
            "form": form,
            "errors": form.errors,
            "effects": [actions.Effect(str(run), text, can_end)],
            "keys": run.pk,
            "back": "page",
            "back_url": self.url(TaskRun, "change", run.pk),
            "action_url": self.url(TaskRun, "cancel", run.pk),
        }
        return self.extra_page(request, self.confirm_template, str(_CANCEL), context)


def _removed(run: TaskRun) -> str:
    """Return a sentence that says when the task of a run was removed."""
    deployment, name = run.scheduler.deployment or "", run.task_name or ""
    removal = removal_of(database.alias(), deployment, name)
    if removal is None:
        return ""
    answer = Answer(Cause.REMOVED, system_clock.now(), until=removal.at)
    return sentence(answer, timezone.get_current_timezone())


def _attempts_at(run: TaskRun) -> Table | None:
    """Return the attempts at the occurrence of a run if there are several."""
    if run.started_at is None:
        return None
    same = TaskRun.objects.filter(
        scheduler=run.scheduler_id,
        task_name=run.task_name,
        scheduled_for=run.scheduled_for,
        started_at__isnull=False,
    )
    shown = same.select_related("instance").defer(*task_detail.LONG)
    found = list(shown.order_by("id")[:_ATTEMPTS])
    if len(found) < 2:
        return None
    return attempts(gettext("Attempts at this occurrence"), found, system_clock.now())


# --- tracebacks -----------------------------------------------------------------

_PLACE = re.compile(
    r'^\s*(?:[|+]\s*)*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<name>.+))?$'
)
_LIBRARIES = re.compile(
    r"[/\\](?:site-packages|dist-packages|lib[/\\]python\d[\d.]*)[/\\]"
    r"|[/\\]django_declarative_cron[/\\](?:runtime|store|core)[/\\]"
    r"|^<"
)
_FRAMES = 20


class Frame(NamedTuple):
    """A place in the code of the project, with its source line if the traceback has it."""

    file: str
    line: int
    name: str
    code: str


def project_frames(traceback: str) -> list[Frame]:
    """Return the frames of a traceback that are in no library, the innermost first."""
    frames = [frame for frame in _frames(traceback) if not _LIBRARIES.search(frame.file)]
    return frames[::-1][:_FRAMES]


def _frames(traceback: str) -> Iterator[Frame]:
    lines = traceback.splitlines()
    for index, text in enumerate(lines):
        place = _PLACE.match(text)
        if place is None:
            continue
        following = lines[index + 1].strip() if index + 1 < len(lines) else ""
        has_code = bool(following) and _PLACE.match(lines[index + 1]) is None
        code = following if has_code else ""
        yield Frame(place["file"], int(place["line"][:9]), place["name"] or "", code)
