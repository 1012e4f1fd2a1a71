"""Asking a run to end: confirmed, by a permission of its own, and written down."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext, override
from django.utils.translation import gettext_lazy as _

from ..models import Outcome, TaskRun
from ..runtime.clock import system_clock
from ..store import database, manual_runs, operator_actions
from ..store.manual_runs import CANCELLABLE, Effect
from .acts import Expectation
from .forms import ActForm
from .live import LiveAdmin
from .readonly import HIGHEST_KEY

_LABEL = _("Ask to end")
_OVER = _("It has ended, or was asked before.")
_TOLD = {
    Effect.ASKED: _("It was asked to end."),
    Effect.ENDED: _("It had not begun, and has ended."),
    Effect.NONE: _OVER,
}


class CancellingAdmin(LiveAdmin):
    """Let people ask a run in progress to end."""

    act_template = "admin/django_declarative_cron/scheduledtask/act.html"

    def get_urls(self) -> list[URLPattern]:
        """Add the pages that Django has none for."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_cancel"
        # As with other acts: a row that is held is not waited for at length.
        alone = transaction.non_atomic_requests(using=database.alias())
        view = alone(self.admin_site.admin_view(self.cancel_view))
        return [path("<int:key>/cancel/", view, name=name), *super().get_urls()]

    def cancel_url(self, request: HttpRequest, run: TaskRun) -> str:
        """Return the address at which a run is asked to end, empty where that cannot be."""
        if run.outcome not in CANCELLABLE or not self._may(request):
            return ""
        return self.address(TaskRun, "cancel", run.pk)

    def _may(self, request: HttpRequest) -> bool:
        return self.may_do(request, "cancel_taskrun") and self.has_view_permission(request)

    def cancel_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Show the confirmation page, and ask once it is confirmed."""
        if not self._may(request):
            raise PermissionDenied
        run = self.get_queryset(request).filter(pk=key).first() if key <= HIGHEST_KEY else None
        if run is None:
            raise Http404
        now = system_clock.now()
        form = ActForm(request.POST if request.method == "POST" else None)
        if not form.is_bound or not form.is_valid():
            return self._confirm(request, run, form)
        who = operator_actions.Act(
            author=str(request.user), at=now, note=form.note_given, author_key=str(request.user.pk)
        )
        effect = manual_runs.cancel(run, who, system_clock.database_time())
        if effect is not Effect.NONE:
            self._log(request, run, form.note_given)
        level = messages.WARNING if effect is Effect.NONE else messages.SUCCESS
        self.message_user(request, str(_TOLD[effect]), level)
        return HttpResponseRedirect(self.address(TaskRun, "change", run.pk))

    def _confirm(self, request: HttpRequest, run: TaskRun, form: ActForm) -> HttpResponse:
        request.current_app = self.admin_site.name
        can_end = run.outcome in CANCELLABLE and run.cancel_requested_at is None
        text = gettext("Will be told to end, and ends as soon as its callback or its runner does.")
        if not can_end:
            text = str(_OVER)
        elif run.outcome == Outcome.WAITING:
            text = gettext("Ends at once: it has not begun.")
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": _LABEL,
            "opts": self.opts,
            "act": {"label": _LABEL, "question": gettext("Ask this run to end?")},
            "form": form,
            "errors": form.errors,
            "expectations": [Expectation(str(run), text, can_end)],
            "keys": run.pk,
            "back": "page",
            "back_url": self.address(TaskRun, "change", run.pk),
            "act_url": self.address(TaskRun, "cancel", run.pk),
            "media": self.media,
            "has_view_permission": True,
            "original": _LABEL,
        }
        return TemplateResponse(request, self.act_template, context)

    def _log(self, request: HttpRequest, run: TaskRun, note: str) -> None:
        # As Django does: the log is not written in the language of whoever acted.
        with override(None):
            message = f"{_LABEL}: {note}" if note else str(_LABEL)
        LogEntry.objects.log_actions(
            user_id=str(request.user.pk), queryset=[run], action_flag=CHANGE, change_message=message
        )
