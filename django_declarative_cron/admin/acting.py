"""From a button or the action menu through the confirmation page to the act and its traces."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext, override
from django.utils.translation import gettext_lazy as _

from ..models import ScheduledTask
from ..runtime.clock import system_clock
from ..store import database, operator_actions
from ..store.database import HeldError
from ..store.queries import read
from . import acts, formats
from .absence import AttendedAdmin
from .acts import ACTS, Act
from .forms import ActForm
from .readonly import HIGHEST_KEY

_PAGE = "page"
_LIST = "list"


class ActingAdmin(AttendedAdmin):
    """Let people act on tasks: each act by its own permission, confirmed, and written down."""

    actions = [
        *("run_now", "pause", "resume", "skip_next", "unskip"),
        *("retry_now", "clear_retry"),
    ]
    act_template = "admin/django_declarative_cron/scheduledtask/act.html"

    def get_urls(self) -> list[URLPattern]:
        """Add the pages that Django has none for."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_act"
        # In a transaction of the whole request, a row that is held would be waited for at length.
        alone = transaction.non_atomic_requests(using=database.alias())
        view = alone(self.admin_site.admin_view(self.act_view))
        return [path("act/<slug:key>/", view, name=name), *super().get_urls()]

    def has_run_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may run tasks now."""
        return self.may(request, acts.RUN)

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may pause tasks."""
        return self.may(request, acts.PAUSE)

    def has_resume_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may resume tasks."""
        return self.may(request, acts.RESUME)

    def has_skip_next_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may skip next runs."""
        return self.may(request, acts.SKIP_NEXT)

    def has_retry_now_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may bring retries forward."""
        return self.may(request, acts.RETRY_NOW)

    def has_clear_retry_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may clear retry states."""
        return self.may(request, acts.CLEAR_RETRY)

    def may(self, request: HttpRequest, act: Act) -> bool:
        """Return whether the user may do an act; what one may not see, one may not change."""
        return self.may_do(request, act.codename) and self.has_view_permission(request)

    @admin.action(description=acts.RUN.label, permissions=["run"])
    def run_now(self, request: HttpRequest, queryset: QuerySet[ScheduledTask]) -> HttpResponse:
        """Ask for the confirmation of runs."""
        return self._ask(request, acts.RUN, list(queryset))

    @admin.action(description=acts.PAUSE.label, permissions=["pause"])
    def pause(self, request: HttpRequest, queryset: QuerySet[ScheduledTask]) -> HttpResponse:
        """Ask for the confirmation of pauses."""
        return self._ask(request, acts.PAUSE, list(queryset))

    @admin.action(description=acts.RESUME.label, permissions=["resume"])
    def resume(self, request: HttpRequest, queryset: QuerySet[ScheduledTask]) -> HttpResponse:
        """Ask for the confirmation of resumptions."""
        return self._ask(request, acts.RESUME, list(queryset))

    @admin.action(description=acts.SKIP_NEXT.label, permissions=["skip_next"])
    def skip_next(self, request: HttpRequest, queryset: QuerySet[ScheduledTask]) -> HttpResponse:
        """Ask for the confirmation of skipping."""
        return self._ask(request, acts.SKIP_NEXT, list(queryset))

    @admin.action(description=acts.RETRY_NOW.label, permissions=["retry_now"])
    def retry_now(self, request: HttpRequest, queryset: QuerySet[ScheduledTask]) -> HttpResponse:
        """Ask for the confirmation of retries."""
        return self._ask(request, acts.RETRY_NOW, list(queryset))

    @admin.action(description=acts.UNSKIP.label, permissions=["skip_next"])
    def unskip(self, request: HttpRequest, queryset: QuerySet[ScheduledTask]) -> HttpResponse:
        """Ask for the confirmation that runs are skipped no longer."""
        return self._ask(request, acts.UNSKIP, list(queryset))

    @admin.action(description=acts.CLEAR_RETRY.label, permissions=["clear_retry"])
    def clear_retry(self, request: HttpRequest, queryset: QuerySet[ScheduledTask]) -> HttpResponse:
        """Ask for the confirmation of clearings."""
        return self._ask(request, acts.CLEAR_RETRY, list(queryset))

    def act_view(self, request: HttpRequest, key: str) -> HttpResponse:
        """Show the confirmation page, and do the act once it is confirmed."""
        act = ACTS.get(key)
        if act is None:
            raise Http404
        if not self.may(request, act):
            raise PermissionDenied
        if request.method != "POST":
            keys = request.GET.getlist("task")
            return self._ask(request, act, self._chosen(request, keys))
        tasks = self._chosen(request, request.POST.get("tasks", "").split(","))
        now = system_clock.now()
        form = act.form(request.POST)
        if not form.is_valid() or not tasks:
            return self._ask(request, act, tasks, form)
        try:
            self._perform(request, act, tasks, form, now)
        except HeldError as error:
            self.message_user(request, _held(error), messages.ERROR)
            return self._ask(request, act, tasks, form)
        return self._back(request, tasks, request.POST.get("back", _LIST))

    def _chosen(self, request: HttpRequest, keys: Iterable[str]) -> list[ScheduledTask]:
        numbers = [int(key) for key in keys if key.isascii() and key.isdigit() and len(key) < 20]
        chosen = self.get_queryset(request).filter(pk__in=[n for n in numbers if n <= HIGHEST_KEY])
        return list(chosen.order_by("name"))

    def _ask(
        self,
        request: HttpRequest,
        act: Act,
        tasks: list[ScheduledTask],
        form: ActForm | None = None,
    ) -> HttpResponse:
        if not tasks:
            self.message_user(request, gettext("No task was selected."), messages.WARNING)
            return self._back(request, tasks, _LIST)
        now = system_clock.now()
        form = form or act.form()
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request, self.act_template, self._page(request, act, tasks, form, now)
        )

    def _page(
        self,
        request: HttpRequest,
        act: Act,
        tasks: list[ScheduledTask],
        form: ActForm,
        now: datetime,
    ) -> dict[str, Any]:
        came_from_page = request.method == "GET" or request.POST.get("back") == _PAGE
        return {
            **self.admin_site.each_context(request),
            "title": act.label,
            "opts": self.opts,
            "act": act,
            "form": form,
            "errors": form.errors,
            "expectations": [act.expectation(task, read(task, now), now) for task in tasks],
            "keys": ",".join(str(task.pk) for task in tasks),
            "back": _PAGE if came_from_page else _LIST,
            "back_url": self._back(request, tasks, _PAGE if came_from_page else _LIST).url,
            "act_url": self._filtered(request, self.address(self.model, "act", act.key)),
            "media": self.media,
            # The page of a form, which this one extends, ends its breadcrumbs with these.
            "has_view_permission": True,
            "original": act.label,
        }

    def _perform(
        self,
        request: HttpRequest,
        act: Act,
        tasks: list[ScheduledTask],
        form: ActForm,
        now: datetime,
    ) -> None:
        who = operator_actions.Act(
            author=str(request.user), at=now, note=form.note_given, author_key=str(request.user.pk)
        )
        names = [task.name or "" for task in tasks]
        taken = set(act.apply(names, who, **form.said))
        self._log(request, act, [task for task in tasks if task.name in taken], form)
        self._tell(request, act, [name for name in names if name in taken], taken_effect=True)
        self._tell(request, act, [name for name in names if name not in taken], taken_effect=False)

    def _tell(
        self, request: HttpRequest, act: Act, names: Collection[str], *, taken_effect: bool
    ) -> None:
        if names:
            text = act.done if taken_effect else act.undone
            level = messages.SUCCESS if taken_effect else messages.WARNING
            self.message_user(request, str(text) % {"names": formats.names(names)}, level)

    def _log(
        self, request: HttpRequest, act: Act, tasks: list[ScheduledTask], form: ActForm
    ) -> None:
        if not tasks:
            return
        # As Django does: the log is not written in the language of whoever acted.
        with override(None):
            message = _log_message(act, form)
        LogEntry.objects.log_actions(
            user_id=str(request.user.pk), queryset=tasks, action_flag=CHANGE, change_message=message
        )

    def _back(
        self, request: HttpRequest, tasks: list[ScheduledTask], back: str
    ) -> HttpResponseRedirect:
        if back == _PAGE and len(tasks) == 1:
            address = self.address(self.model, "change", tasks[0].pk)
        else:
            address = self.address(self.model, "changelist")
        return HttpResponseRedirect(self._filtered(request, address))

    def _filtered(self, request: HttpRequest, address: str) -> str:
        """Let an address keep the filters of the list that a person came from."""
        context: Any = {"preserved_filters": self.get_preserved_filters(request), "opts": self.opts}
        return str(add_preserved_filters(context, address))


def _held(error: HeldError) -> str:
    if error.names:
        text = gettext("Somebody else holds the row of %(names)s. Nothing was changed: try again.")
        return text % {"names": formats.names(error.names)}
    return gettext("Somebody else holds rows that this needs. Nothing was changed: try again.")


def _log_message(act: Act, form: ActForm) -> str:
    until: datetime | None = form.cleaned_data.get("until")
    label = str(act.label)
    if until is not None:
        label = str(_("%(act)s until %(until)s")) % {"act": label, "until": f"{until:%F %H:%M} UTC"}
    return f"{label}: {form.note_given}" if form.note_given else label
