"""Pages that the database cannot answer: one sentence in place of an error."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from django.db import DatabaseError, connections
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.response import SimpleTemplateResponse
from django.utils.translation import gettext

from ..signals import report
from ..store import database
from ..store.database import was_stopped, why_unavailable

_TEMPLATE: Final = "admin/django_declarative_cron/unavailable.html"

View = Callable[..., HttpResponse]


def answered(view: View) -> View:
    """Limit how long a page reads, and let it say in one sentence why there is no answer."""

    @wraps(view)
    def shown(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            if request.method != "GET":
                return view(request, *args, **kwargs)
            with database.reading(connections[database.alias()]):
                page = view(request, *args, **kwargs)
                # Templates fetch rows, so they are rendered within the limit.
                return page.render() if isinstance(page, SimpleTemplateResponse) else page
        except DatabaseError as error:
            why = _reason(error)
            if why is None:
                raise
            report("An admin page", error, "the page says so")
            return render(request, _TEMPLATE, {"reason": why}, status=503)

    return shown


def _reason(error: DatabaseError) -> str | None:
    if was_stopped(error):
        words = gettext(
            "This page took longer than %(seconds)s seconds and was stopped."
            " Narrow it with a filter or a search."
        )
        return words % {"seconds": database.PAGE}
    return why_unavailable(database.alias())
