"""The parts of a page that change, by themselves: what an open page fetches again."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import SimpleTemplateResponse
from django.urls import URLPattern, path
from django.utils.cache import get_conditional_response, set_response_etag

from .readonly import ReadOnlyAdmin

_BASES = "admin/django_declarative_cron/live"


class LiveAdmin(ReadOnlyAdmin):
    """Give the changing parts of a list or of a row's page at an address of their own.

    They are made by the view and the templates of the whole page, with its permissions; only
    what these extend is another, smaller template.
    """

    def get_urls(self) -> list[URLPattern]:
        """Add the pages that Django has none for."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_live"
        of_list = self.admin_site.admin_view(self.live_list_view)
        of_page = self.admin_site.admin_view(self.live_page_view)
        return [
            path("live/", of_list, name=f"{name}_list"),
            path("<path:object_id>/live/", of_page, name=f"{name}_page"),
            *super().get_urls(),
        ]

    def live_list_view(self, request: HttpRequest) -> HttpResponse:
        """Show the changing parts of the list."""
        page = self.changelist_view(request, {"ddc_base": f"{_BASES}/list.html"})
        return _unless_unchanged(request, page)

    def live_page_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the changing parts of a row's page."""
        context: dict[str, Any] = {"ddc_base": f"{_BASES}/page.html"}
        return _unless_unchanged(request, self.change_view(request, object_id, "", context))


def _unless_unchanged(request: HttpRequest, page: HttpResponse) -> HttpResponse:
    """Return 304 without a body if the page is what the browser has already."""
    if isinstance(page, SimpleTemplateResponse):
        page.render()
    if page.status_code != HTTPStatus.OK:
        return page
    set_response_etag(page)
    return get_conditional_response(request, etag=page["ETag"], response=page) or page
