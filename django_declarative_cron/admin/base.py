"""The base of our admin pages: read-only, with live updates and a limit for slow queries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cached_property, partial, wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.views.main import ORDER_VAR
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.db import DatabaseError, connections, models, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.template.response import SimpleTemplateResponse, TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.cache import get_conditional_response, set_response_etag
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext, override

from ..conf import options
from ..signals import report
from ..store import database
from . import badges
from .summary import scheduler_banner

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[models.Model]
    _Paginator = Paginator[models.Model]
else:
    _ModelAdmin = admin.ModelAdmin
    _Paginator = Paginator

TEMPLATES: Final = "admin/django_declarative_cron"

DEEPEST_ROW = 10_000
"""Number of rows of a history that can be paged through; filters reach the older ones."""

NOTHING = "-"
"""Shown where there is no value; Django's read-only fields would show ``None``."""

HIGHEST_KEY = 2**63 - 1

Columns = list[Any]
"""Names of fields, and callables that take a row; the stubs know too few of the latter."""

View = Callable[..., HttpResponse]


class ReadOnlyModelAdmin(_ModelAdmin):
    """Show the rows of this project's deployment; only ``store`` writes them."""

    show_full_result_count = False
    # Facets would count all rows of each choice, which reads the whole history.
    show_facets = admin.ShowFacets.NEVER
    deployment_lookup = "scheduler__deployment"
    confirm_template = f"{TEMPLATES}/confirm.html"
    rare: ClassVar[dict[Any, Callable[[Any], Any]]] = {}
    """Fields that are left out where they have no value, because most rows have none."""

    class Media:
        css = {"all": [f"django_declarative_cron/{name}.css" for name in ("admin", "charts")]}

    @property
    def urls(self) -> list[URLPattern]:
        """Return the URLs of all pages; each page reports a database that cannot answer."""
        patterns = self.get_urls()
        for pattern in patterns:
            pattern.callback = _with_time_limit(pattern.callback)
        return patterns

    def url_name(self, page: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        rows = super().get_queryset(request)
        return rows.filter(**{self.deployment_lookup: options().DEPLOYMENT})

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def writing_view(self, view: View) -> View:
        """Return a view that is not within a transaction of the whole request.

        There the limit for locked rows would not hold, and a slow receiver would keep it open.
        """
        of_admin = self.admin_site.admin_view(view)
        return transaction.non_atomic_requests(using=database.alias())(of_admin)

    def may_act(self, request: HttpRequest, codename: str) -> bool:
        """Return whether actions are enabled here and the user has the permission for one."""
        enabled = options().ADMIN_ACTIONS
        return enabled and request.user.has_perm(f"{self.opts.app_label}.{codename}")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        title = {"title": capfirst(self.opts.verbose_name_plural)}
        show = partial(super().changelist_view, request, title | (extra_context or {}))
        _drop_unsupported_order(request, self.sortable_by)
        if request.method == "POST":
            self._check_action_permission(request)
            # Custom actions may not be idempotent, so a failed POST is not repeated.
            return show() if self._selects_rows(request) else self._invalid_selection(request)
        try:
            return show()
        except OverflowError:
            return self._invalid_selection(request)

    def _check_action_permission(self, request: HttpRequest) -> None:
        # Django answers unauthorised actions with "No action selected", so raise 403 first.
        ours = {getattr(action, "__name__", action) for action in self.actions or ()}
        forbidden = ours - set(self.get_actions(request))
        if not forbidden.isdisjoint(request.POST.getlist("action")):
            raise PermissionDenied

    def _selects_rows(self, request: HttpRequest) -> bool:
        # Databases raise errors for numbers that are larger than their columns.
        return all(self._is_key(text) for text in request.POST.getlist(ACTION_CHECKBOX_NAME))

    def _is_key(self, text: str) -> bool:
        try:
            key = self.opts.pk.to_python(text)
        except ValidationError:
            return False
        return key is not None and not (isinstance(key, int) and abs(key) > HIGHEST_KEY)

    def _invalid_selection(self, request: HttpRequest) -> HttpResponse:
        text = gettext("The request contains an invalid key. Nothing was changed.")
        self.message_user(request, text, messages.WARNING)
        return HttpResponseRedirect(self.url(self.model, "changelist"))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        absent = {field for field, read in self.rare.items() if not obj or read(obj) in (None, "")}
        return [
            (name, {**said, "fields": [each for each in said["fields"] if each not in absent]})
            for name, said in super().get_fieldsets(request, obj)
        ]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        title = {"title": capfirst(self.opts.verbose_name)}
        context |= title | self.page_context(request, kwargs["obj"])
        return super().render_change_form(request, context, *args, **kwargs)

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return the variables that the template of a row's page needs beside the fields."""
        return {}

    def extra_page(
        self, request: HttpRequest, template: str, title: str, context: dict[str, Any]
    ) -> HttpResponse:
        """Return a page of our own inside the admin, with breadcrumbs through the list."""
        request.current_app = self.admin_site.name
        shared = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "media": self.media,
            "list_url": self.url(self.model, "changelist"),
            # Our pages extend Django's form page, whose breadcrumbs end with these.
            "has_view_permission": True,
            "original": title,
        }
        return TemplateResponse(request, template, shared | context)

    def log_action(self, request: HttpRequest, rows: list[Any], label: Any, note: str) -> None:
        """Write what a user did to Django's log, in the default language as Django does."""
        if not rows:
            return
        with override(None):
            message = f"{label}: {note}" if note else str(label)
        LogEntry.objects.log_actions(
            user_id=str(request.user.pk), queryset=rows, action_flag=CHANGE, change_message=message
        )

    def url(self, model: type[models.Model], page: str, *args: object) -> str:
        """Return the URL of one of our pages on this site."""
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
        return reverse(name, args=args, current_app=self.admin_site.name)

    def page_url(self, request: HttpRequest, row: models.Model) -> str:
        """Return the URL of a row's page, or "" if the user may not see it."""
        return self.url(type(row), "change", row.pk) if self.shows(request, type(row)) else ""

    def shows(self, request: HttpRequest, model: type[models.Model]) -> bool:
        """Return whether this site has pages of a model that the user may see."""
        if not self.admin_site.is_registered(model):
            return False
        return self.admin_site.get_model_admin(model).has_view_permission(request)


class LiveUpdatesMixin(ReadOnlyModelAdmin):
    """Serve the changing parts of a list or of a row's page at URLs of their own.

    The view, the permissions and the templates are those of the whole page; the templates
    extend a smaller base.
    """

    class Media:
        js = ["django_declarative_cron/live.js"]

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        of_list, of_row = wrap(self.live_list_view), wrap(self.live_page_view)
        return [
            path("live/", of_list, name=self.url_name("live_list")),
            path("<path:object_id>/live/", of_row, name=self.url_name("live_page")),
            *super().get_urls(),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        # The template calls it, so not before the view permission has been checked.
        shared = {"scheduler_banner": partial(scheduler_banner, self, request), "is_live": True}
        return super().changelist_view(request, shared | (extra_context or {}))

    def live_list_view(self, request: HttpRequest) -> HttpResponse:
        page = self.changelist_view(request, {"ddc_base": f"{TEMPLATES}/live/list.html"})
        return _unless_unchanged(request, page)

    def live_page_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        context = {"ddc_base": f"{TEMPLATES}/live/page.html"}
        return _unless_unchanged(request, self.change_view(request, object_id, "", context))


def _unless_unchanged(request: HttpRequest, page: HttpResponse) -> HttpResponse:
    if isinstance(page, SimpleTemplateResponse):
        page.render()
    if page.status_code != HTTPStatus.OK:
        return page
    set_response_etag(page)
    return get_conditional_response(request, etag=page["ETag"], response=page) or page


def _with_time_limit(view: View) -> View:
    """Limit how long a page may read, and explain in one sentence why there is no answer."""

    @wraps(view)
    def limited(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            if request.method != "GET":
                return view(request, *args, **kwargs)
            with database.reading(connections[database.alias()]):
                page = view(request, *args, **kwargs)
                # Templates fetch rows, so they are rendered within the limit.
                return page.render() if isinstance(page, SimpleTemplateResponse) else page
        except DatabaseError as error:
            reason = _why_no_answer(error)
            if reason is None:
                raise
            report("An admin page", error, "the page says so")
            template, context = f"{TEMPLATES}/unavailable.html", {"reason": reason}
            return render(request, template, context, status=HTTPStatus.SERVICE_UNAVAILABLE)

    return limited


def _why_no_answer(error: DatabaseError) -> str | None:
    if database.was_stopped(error):
        text = gettext(
            "This page took longer than %(seconds)s seconds and was stopped."
            " Narrow it with a filter or a search."
        )
        return text % {"seconds": database.PAGE}
    return database.why_unavailable(database.alias())


class HistoryPaginator(_Paginator):
    """Count rows up to ``DEEPEST_ROW`` only; a history may have millions of rows."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        # Neither the order nor the columns of the list are needed to count its rows.
        return int(rows.order_by().values("pk")[:DEEPEST_ROW].count())

    @property
    def counted(self) -> str:
        """Return the count with a plus if there may be more rows, otherwise ""."""
        return badges.count(self.count, DEEPEST_ROW) if self.count >= DEEPEST_ROW else ""

    @property
    def results(self) -> str:
        # The words are Django's own, of its form for searches.
        text = ngettext("%(counter)s result", "%(counter)s results", self.count)
        return text % {"counter": self.counted}


def _drop_unsupported_order(request: HttpRequest, sortable_by: Any) -> None:
    # Any other order than that of the key would sort the whole history.
    if sortable_by == () and ORDER_VAR in request.GET:
        query = request.GET.copy()
        del query[ORDER_VAR]
        request.GET = query  # type: ignore[assignment]


def instant(model: type[models.Model], field: str, label: Any = None) -> Callable[[Any], str]:
    """Return a column that shows an instant in the project's zone, with and without ``USE_TZ``."""

    def show(row: Any) -> str:
        value: datetime | None = getattr(row, field)
        return NOTHING if value is None else badges.moment(value)

    return _column(show, model, field, label)


def text_column(model: type[models.Model], field: str) -> Callable[[Any], str]:
    """Return a column that shows a text, with the whole as its title where a list cuts it."""

    def show(row: Any) -> str:
        value = getattr(row, field)
        return badges.titled(value) if value else NOTHING

    return _column(show, model, field)


def _column(
    show: Callable[[Any], str], model: type[models.Model], field: str, label: Any = None
) -> Callable[[Any], str]:
    show.__name__ = field
    label = label or model._meta.get_field(field).verbose_name  # type: ignore[union-attr]
    return admin.display(description=label, ordering=field)(show)
