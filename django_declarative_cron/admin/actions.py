"""Operator actions on tasks: one table, a confirmation page for each, and the audit log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.functional import lazy
from django.utils.html import format_html
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..formatting import LATEST
from ..models import ScheduledTask, TaskOverride
from ..runtime.clock import system_clock
from ..store import operator_actions
from ..store.database import HeldError
from ..store.queries import Reading, read, skips_at
from . import badges
from .base import HIGHEST_KEY, Columns, HistoryPaginator, ReadOnlyModelAdmin, instant, text_column

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

Text: TypeAlias = "str | _StrPromise"
Preview: TypeAlias = tuple[bool, str]
"""Whether an action will change anything, and what will happen."""


class FutureField(forms.DateTimeField):
    """A future instant, entered in the current time zone."""

    def __init__(self, *, past: Any, **kwargs: Any) -> None:
        self.past = past
        widget = forms.DateTimeInput(format="%Y-%m-%dT%H:%M", attrs={"type": "datetime-local"})
        super().__init__(required=False, widget=widget, **kwargs)

    def clean(self, value: Any) -> datetime | None:
        given: datetime | None = super().clean(value)
        if given is None:
            return None
        if timezone.is_naive(given):
            given = _in_zone(given)
        try:
            given = given.astimezone(UTC)
        except OverflowError:
            given = datetime.max.replace(tzinfo=UTC)
        if given >= LATEST:
            raise ValidationError(_("This is too far in the future."))
        if given <= system_clock.now():
            raise ValidationError(self.past)
        return given


def _in_zone(given: datetime) -> datetime:
    # With USE_TZ, Django refuses local times that exist twice or never; without, we do.
    zone = timezone.get_current_timezone()
    first, second = (given.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        raise ValidationError(_("A clock change makes this time ambiguous or invalid."))
    return first


class ActionForm(forms.Form):
    note = forms.CharField(
        label=_("Note"),
        required=False,
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("The reason, for the audit log."),
    )


class PauseForm(ActionForm):
    until = FutureField(
        label=_("Until"),
        past=_("The end of the pause must be in the future."),
        help_text=format_lazy(
            _("A time in {zone}. Leave it empty to pause the task until it is resumed."),
            zone=lazy(timezone.get_current_timezone_name, str)(),
        ),
    )
    field_order = ["until", "note"]


@dataclass(frozen=True, slots=True)
class Action:
    """An action on tasks: its texts, what it does, and what it will do to one task."""

    key: str
    label: Text
    question: Text
    done: Text
    undone: Text
    # Takes names, author and the fields of its form; returns the names of changed tasks.
    apply: Callable[..., list[str]]
    preview: Callable[[ScheduledTask, Reading, datetime], Preview]
    form: type[ActionForm] = ActionForm
    # The key of the action whose permission it needs, its own by default.
    permission: str = ""

    @property
    def codename(self) -> str:
        return f"{self.permission or self.key}_scheduledtask"

    def effect(self, reading: Reading, now: datetime) -> Effect:
        task = reading.task
        if reading.schedule is None:
            text = gettext("The row is damaged (%(reason)s). Nothing will change.")
            return Effect(task.name or "", text % {"reason": reading.problem}, False)
        changes, text = self.preview(task, reading, now)
        return Effect(task.name or "", text, changes)


@dataclass(frozen=True, slots=True)
class Effect:
    """What an action will do to one task or run, shown before it is confirmed."""

    name: str
    text: str
    changes: bool


def _preview_run(task: ScheduledTask, reading: Reading, now: datetime) -> Preview:
    if reading.problem:
        text = gettext("Will be tried although the task is broken: %(reason)s")
        return True, text % {"reason": reading.problem}
    if task.running_run is not None:
        return True, gettext("Will run once more after the current run has ended.")
    if task.paused_since is not None:
        return True, gettext("Will run once now and stay paused.")
    return True, gettext("Will run once now. The schedule does not change.")


def _preview_pause(task: ScheduledTask, reading: Reading, now: datetime) -> Preview:
    if task.paused_since is not None and not task.enabled:
        return True, gettext("Disabled by its declaration. The pause will be stored as well.")
    if task.paused_since is not None:
        return True, gettext("Already paused. This pause replaces the current one.")
    if task.running_run is not None:
        return True, gettext("The current run will continue. No new run will start.")
    return True, gettext("No run will start. Due occurrences are recorded as skipped.")


def _preview_resume(task: ScheduledTask, reading: Reading, now: datetime) -> Preview:
    if not task.enabled:
        return False, gettext("Disabled by its declaration. Change the declaration instead.")
    if task.paused_since is None or reading.schedule is None:
        return False, gettext("Not paused. Nothing will change.")
    following = reading.schedule.next_after(now)
    if following is None:
        return True, gettext("Will be active. No future occurrences.")
    text = gettext("Will run next at {}. Skipped occurrences are not caught up.")
    return True, format_html(text, badges.moment(following))


def _preview_clear(task: ScheduledTask, reading: Reading, now: datetime) -> Preview:
    return _of_retry(task, gettext("The retry at {} will be cancelled."))


def _preview_retry(task: ScheduledTask, reading: Reading, now: datetime) -> Preview:
    return _of_retry(task, gettext("Will run once now, instead of the retry at {}."))


def _of_retry(task: ScheduledTask, text: str) -> Preview:
    if task.pending_retry_until is None:
        return False, gettext("No retry is pending. Nothing will change.")
    return True, format_html(text, badges.moment(task.pending_retry_until))


def _preview_skip(task: ScheduledTask, reading: Reading, now: datetime) -> Preview:
    if not task.enabled:
        return False, gettext("Disabled by its declaration. There is no run to skip.")
    if task.paused_since is not None:
        return False, gettext("Paused. There is no run to skip.")
    schedule, skips = reading.schedule, skips_at(task, now)
    if skips is not None and schedule is not None:
        text = gettext("The run at {} will be skipped already. Only one run can be skipped.")
        return False, format_html(text, badges.moment(skips))
    mark = max(task.registered_at, task.discharged_at or task.registered_at, now)
    skipped = None if schedule is None else schedule.next_after(mark)
    if schedule is None or skipped is None:
        return False, gettext("No future occurrences.")
    following, shown = schedule.next_after(skipped), badges.moment(skipped)
    if following is None:
        return True, format_html(gettext("The run at {} will be skipped."), shown)
    text = gettext("The run at {} will be skipped. The next run is at {}.")
    return True, format_html(text, shown, badges.moment(following))


def _preview_unskip(task: ScheduledTask, reading: Reading, now: datetime) -> Preview:
    skips = skips_at(task, now)
    if skips is None or reading.schedule is None:
        return False, gettext("No run is set to be skipped. Nothing will change.")
    return True, format_html(gettext("The run at {} will not be skipped."), badges.moment(skips))


RUN = Action(
    key="run",
    label=_("Run now"),
    question=_("Run these tasks now?"),
    done=_("Run requested: %(names)s."),
    undone=_("Not run, because the rows are missing or damaged: %(names)s."),
    apply=operator_actions.request_run,
    preview=_preview_run,
)
PAUSE = Action(
    key="pause",
    label=_("Pause"),
    question=_("Pause these tasks?"),
    done=_("Paused: %(names)s."),
    undone=_("Not paused, because the rows are missing or damaged: %(names)s."),
    apply=operator_actions.pause,
    preview=_preview_pause,
    form=PauseForm,
)
RESUME = Action(
    key="resume",
    label=_("Resume"),
    question=_("Resume these tasks?"),
    done=_("Resumed: %(names)s."),
    undone=_("Nothing to resume: %(names)s."),
    apply=operator_actions.resume,
    preview=_preview_resume,
)
SKIP_NEXT = Action(
    key="skip_next",
    label=_("Skip next run"),
    question=_("Skip the next run of these tasks?"),
    done=_("Next run skipped: %(names)s."),
    undone=_("Nothing to skip: %(names)s."),
    apply=operator_actions.skip_next,
    preview=_preview_skip,
)
UNSKIP = Action(
    key="unskip",
    label=_("Undo skip"),
    question=_("Undo the skip of the next run of these tasks?"),
    done=_("Skip undone: %(names)s."),
    undone=_("No skip to undo: %(names)s."),
    apply=operator_actions.unskip,
    preview=_preview_unskip,
    permission="skip_next",
)
RETRY_NOW = Action(
    key="retry_now",
    label=_("Retry now"),
    question=_("Retry these tasks now?"),
    done=_("Retry requested: %(names)s."),
    undone=_("Nothing to retry: %(names)s."),
    apply=operator_actions.retry_now,
    preview=_preview_retry,
)
CLEAR_RETRY = Action(
    key="clear_retry",
    label=_("Clear retry state"),
    question=_("Clear the retry state of these tasks?"),
    done=_("Retry state cleared: %(names)s."),
    undone=_("Nothing to clear: %(names)s."),
    apply=operator_actions.clear_retry,
    preview=_preview_clear,
)

ACTIONS = {
    action.key: action for action in (RUN, PAUSE, RESUME, SKIP_NEXT, UNSKIP, RETRY_NOW, CLEAR_RETRY)
}


def _of_selected(action: Action) -> Callable[..., HttpResponse]:
    """Return the entry of an action in the menu of the list."""

    @admin.action(description=action.label)
    def confirm(page: TaskActionsMixin, request: HttpRequest, queryset: Any) -> HttpResponse:
        return page.confirm(request, action, list(queryset))

    confirm.__name__ = action.key
    return confirm


class TaskActionsMixin(ReadOnlyModelAdmin):
    """Let users act on tasks, with a permission and a confirmation page for each action."""

    actions: Columns = [_of_selected(action) for action in ACTIONS.values()]

    def get_urls(self) -> list[URLPattern]:
        view = self.writing_view(self.action_view)
        return [path("act/<slug:key>/", view, name=self.url_name("act")), *super().get_urls()]

    def get_actions(self, request: HttpRequest, action_location: Any = None) -> dict[str, Any]:
        # Django has locations since 6.1; ours are actions of the list.
        location = {} if action_location is None else {"action_location": action_location}
        found: dict[str, Any] = super().get_actions(request, **location)
        forbidden = {key for key, each in ACTIONS.items() if not self.allows(request, each)}
        return {name: each for name, each in found.items() if name not in forbidden}

    def allows(self, request: HttpRequest, action: Action) -> bool:
        """Return whether the user may do an action; it needs the view permission as well."""
        return self.may_act(request, action.codename) and self.has_view_permission(request)

    def action_buttons(
        self, request: HttpRequest, reading: Reading, now: datetime
    ) -> list[dict[str, Any]]:
        """Return the buttons of the page of a task: the actions that can change its state."""
        return [
            {"key": each.key, "label": each.label, "url": self.action_url(each, reading.task)}
            for each in ACTIONS.values()
            if self.allows(request, each) and each.effect(reading, now).changes
        ]

    def action_url(self, action: Action, task: ScheduledTask) -> str:
        return f"{self.url(ScheduledTask, 'act', action.key)}?task={task.pk}"

    def action_view(self, request: HttpRequest, key: str) -> HttpResponse:
        """Show the confirmation page, and do the action once it is confirmed."""
        action = ACTIONS.get(key)
        if action is None:
            raise Http404
        if not self.allows(request, action):
            raise PermissionDenied
        if request.method != "POST":
            keys = request.GET.getlist("task")
            return self.confirm(request, action, self._chosen(request, keys))
        tasks = self._chosen(request, request.POST.get("tasks", "").split(","))
        form = action.form(request.POST)
        if not form.is_valid() or not tasks:
            return self.confirm(request, action, tasks, form)
        try:
            self._perform(request, action, tasks, form)
        except HeldError as error:
            self.message_user(request, _locked(error), messages.ERROR)
            return self.confirm(request, action, tasks, form)
        return HttpResponseRedirect(self._back_url(request, tasks))

    def _chosen(self, request: HttpRequest, keys: Iterable[str]) -> list[ScheduledTask]:
        numbers = [int(key) for key in keys if key.isascii() and key.isdigit() and len(key) < 20]
        chosen = self.get_queryset(request).filter(pk__in=[n for n in numbers if n <= HIGHEST_KEY])
        return list(chosen.order_by("name"))

    def confirm(
        self,
        request: HttpRequest,
        action: Action,
        tasks: list[ScheduledTask],
        form: ActionForm | None = None,
    ) -> HttpResponse:
        if not tasks:
            self.message_user(request, gettext("No task was selected."), messages.WARNING)
            return HttpResponseRedirect(self._back_url(request, tasks))
        form, now = form or action.form(), system_clock.now()
        context = {
            "question": action.question,
            "form": form,
            "errors": form.errors,
            "effects": [action.effect(read(task, now), now) for task in tasks],
            "keys": ",".join(str(task.pk) for task in tasks),
            "back": _back(request),
            "back_url": self._back_url(request, tasks),
            "action_url": self._with_filters(request, self.url(self.model, "act", action.key)),
        }
        return self.extra_page(request, self.confirm_template, str(action.label), context)

    def _perform(
        self, request: HttpRequest, action: Action, tasks: list[ScheduledTask], form: ActionForm
    ) -> None:
        author = author_of(request, form)
        names = [task.name or "" for task in tasks]
        given = {key: value for key, value in form.cleaned_data.items() if key != "note"}
        changed = set(action.apply(names, author, **given))
        label, until = action.label, given.get("until")
        if until is not None:
            end = f"{until:%F %H:%M} UTC"
            label = format_lazy(_("{action} until {until}"), action=label, until=end)
        chosen = [task for task in tasks if task.name in changed]
        self.log_action(request, chosen, label, author.note)
        for text, level, shown in (
            (action.done, messages.SUCCESS, [name for name in names if name in changed]),
            (action.undone, messages.WARNING, [name for name in names if name not in changed]),
        ):
            if shown:
                self.message_user(request, str(text) % {"names": badges.names(shown)}, level)

    def _back_url(self, request: HttpRequest, tasks: Collection[ScheduledTask]) -> str:
        if _back(request) == "page" and len(tasks) == 1:
            [task] = tasks
            return self._with_filters(request, self.url(self.model, "change", task.pk))
        return self._with_filters(request, self.url(self.model, "changelist"))

    def _with_filters(self, request: HttpRequest, url: str) -> str:
        context: Any = {"preserved_filters": self.get_preserved_filters(request), "opts": self.opts}
        return str(add_preserved_filters(context, url))


def _back(request: HttpRequest) -> str:
    """Return whether the user came from the page of a task or from the list."""
    is_page = request.method == "GET" or request.POST.get("back") == "page"
    return "page" if is_page else "list"


def author_of(request: HttpRequest, form: ActionForm) -> operator_actions.Act:
    """Return the author and note of an action, as the audit log keeps them."""
    return operator_actions.Act(
        author=str(request.user),
        at=system_clock.now(),
        note=str(form.cleaned_data["note"]),
        author_key=str(request.user.pk),
    )


def _locked(error: HeldError) -> str:
    if error.names:
        text = gettext("Locked by another transaction: %(names)s. Nothing was changed. Try again.")
        return text % {"names": badges.names(error.names)}
    return gettext("Locked by another transaction. Nothing was changed. Try again.")


class TaskOverrideAdmin(ReadOnlyModelAdmin):
    """The audit log of operator actions; entries outlive their tasks."""

    created = instant(TaskOverride, "created_at")
    until = instant(TaskOverride, "until")
    task_name, note = text_column(TaskOverride, "task_name"), text_column(TaskOverride, "note")
    list_display: Columns = [created, "kind", task_name, "author", until, note]
    list_display_links = ["kind"]
    list_filter = ["kind"]
    search_fields = ["task_name", "author", "note"]
    ordering = ["-id"]
    sortable_by = ()
    paginator = HistoryPaginator
    fields: ClassVar[Columns] = [
        *("kind", "task_name", created, "author", "note", until),
        instant(TaskOverride, "ended_at"),
    ]
