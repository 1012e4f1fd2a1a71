"""What all our admin pages share: nothing is added, changed or deleted by a form."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import ORDER_VAR
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator, capfirst
from django.utils.translation import gettext

from ..conf import options
from . import formats
from .unavailable import answered

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[models.Model]
    _Paginator = Paginator[models.Model]
else:
    _ModelAdmin = admin.ModelAdmin
    _Paginator = Paginator

DEEPEST_ROW = 10_000
"""How many rows of a history are paged through; a filter reaches the older ones."""

NOTHING = "-"
"""Stands where there is no value; Django's read-only fields would say ``None`` there."""

_NOTHING_MARKED = SafeString(f'<span class="ddc-nothing">{NOTHING}</span>')

HIGHEST_KEY = 2**63 - 1

_LINE = 160
_STYLES = ("admin", "pictures", "lists")

Columns = list[Any]
"""Names of fields, and callables that take a row; the stubs know too few of the latter."""


class ReadOnlyAdmin(_ModelAdmin):
    """Show rows of this project's deployment; only ``store`` writes them."""

    show_full_result_count = False
    # To count all rows of each choice, a database reads the whole history.
    show_facets = admin.ShowFacets.NEVER
    deployment_lookup = "scheduler__deployment"

    class Media:
        css = {"all": [f"django_declarative_cron/{name}.css" for name in _STYLES]}

    @property
    def urls(self) -> list[URLPattern]:
        """Return the addresses of all pages; each says so if the database cannot answer."""
        patterns = self.get_urls()
        for pattern in patterns:
            pattern.callback = answered(pattern.callback)
        return patterns

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        """Ask for the rows of this deployment alone."""
        rows = super().get_queryset(request)
        return rows.filter(**{self.deployment_lookup: options().DEPLOYMENT})

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: rows are made by schedulers alone."""
        return False

    def may_do(self, request: HttpRequest, codename: str) -> bool:
        """Return whether the project lets people act here, and this one may."""
        may = options().ADMIN_ACTIONS
        return may and request.user.has_perm(f"{self.opts.app_label}.{codename}")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: what is stored is shown, and not edited."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: history is not deleted by hand."""
        return False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, with what stands above it."""
        title = {"title": capfirst(self.opts.verbose_name_plural)}
        show = partial(super().changelist_view, request, title | (extra_context or {}))
        _forget_order(request, self.sortable_by)
        if request.method == "POST":
            self._refuse_forbidden(request)
            # An action may be a project's own, and not one to do twice.
            return show() if self._selects_rows(request) else self._refused(request)
        try:
            return show()
        except OverflowError:
            return self._refused(request)

    def _refuse_forbidden(self, request: HttpRequest) -> None:
        # Django tells who posts an action that is not offered to them "no action selected".
        ours = {getattr(action, "__name__", action) for action in self.actions or ()}
        forbidden = ours - set(self.get_actions(request))
        if not forbidden.isdisjoint(request.POST.getlist("action")):
            raise PermissionDenied

    def _selects_rows(self, request: HttpRequest) -> bool:
        """Return whether the selected values can be keys; a database does not take every number."""
        return all(self._is_key(text) for text in request.POST.getlist(ACTION_CHECKBOX_NAME))

    def _is_key(self, text: str) -> bool:
        try:
            key = self.opts.pk.to_python(text)
        except ValidationError:
            return False
        return key is not None and not (isinstance(key, int) and abs(key) > HIGHEST_KEY)

    def _refused(self, request: HttpRequest) -> HttpResponse:
        text = gettext("What was asked for names no rows that there can be.")
        self.message_user(request, text, messages.WARNING)
        return HttpResponseRedirect(self.address(self.model, "changelist"))

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one row, with what its page adds."""
        return super().changeform_view(request, object_id, form_url, extra_context)

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """Show the page with what is added to it."""
        context |= {
            "title": capfirst(self.opts.verbose_name),
            **self.page_context(request, obj),
        }
        return super().render_change_form(request, context, add, change, form_url, obj)

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return what the template of a row's page shows beside its fields."""
        return {}

    def page_of(self, request: HttpRequest, row: models.Model) -> str:
        """Return the address of a row's page on this site, or an empty text."""
        return self.address(type(row), "change", row.pk) if self.shows(request, type(row)) else ""

    def shows(self, request: HttpRequest, model: type[models.Model]) -> bool:
        """Return whether this site has pages of a model that the user may see."""
        if not self.admin_site.is_registered(model):
            return False
        return self.admin_site.get_model_admin(model).has_view_permission(request)

    def address(self, model: type[models.Model], page: str, *args: object) -> str:
        """Return the address of one of our pages on this site."""
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
        return reverse(name, args=args, current_app=self.admin_site.name)


class HistoryPaginator(_Paginator):
    """Count no further than people page; a history may have millions of rows."""

    @cached_property
    def count(self) -> int:
        """Count the rows, up to the deepest that is shown."""
        rows: Any = self.object_list
        # Neither the order nor the columns of the list are needed to count its rows.
        return int(rows.order_by().values("pk")[:DEEPEST_ROW].count())

    @property
    def counted(self) -> str:
        """Return how far was counted, where that was not to the end; else nothing."""
        return formats.count(self.count, DEEPEST_ROW) if self.count >= DEEPEST_ROW else ""


def _forget_order(request: HttpRequest, sortable_by: Any) -> None:
    """Drop an order that the list does not offer: the database would sort the whole history."""
    if sortable_by == () and ORDER_VAR in request.GET:
        asked = request.GET.copy()
        del asked[ORDER_VAR]
        request.GET = asked  # type: ignore[assignment]


def instant(model: type[models.Model], field: str) -> Callable[[Any], str]:
    """Make a column that shows an instant in the project's zone, with and without ``USE_TZ``."""

    def show(row: Any) -> str:
        value: datetime | None = getattr(row, field)
        return NOTHING if value is None else formats.moment(value)

    show.__name__ = field
    label = model._meta.get_field(field).verbose_name  # type: ignore[union-attr]
    return admin.display(description=label, ordering=field)(show)


def labelled(column: Callable[[Any], str]) -> Callable[[Any], str]:
    """Let a column say its name in each row too, for lists without a head above them."""
    label = column.short_description  # type: ignore[attr-defined]

    @wraps(column)
    def show(row: Any) -> str:
        value = column(row)
        shown = _NOTHING_MARKED if value == NOTHING else value
        return format_html('<span class="ddc-labelled" data-label="{}">{}</span>', label, shown)

    return show


def first_line(text: str) -> str:
    """Return the beginning of a text that may be long."""
    lines = text.strip().splitlines()
    return Truncator(lines[0]).chars(_LINE) if lines else ""
