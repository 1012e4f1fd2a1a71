"""Access tokens of the HTTP binding: shown once when they are made, and revoked."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..core.declarations.values import flaw_of_text
from ..core.http_api import PERMISSIONS, Right, Token
from ..models import AccessToken
from ..runtime.clock import system_clock
from ..store import access_tokens
from .forms import FutureField
from .readonly import NOTHING, Columns, ReadOnlyAdmin, instant

_RIGHTS = {Right.READ: _("read"), Right.REGISTER: _("register"), Right.WORK: _("work")}

created = instant(AccessToken, "created_at")
expires = instant(AccessToken, "expires_at")
used = instant(AccessToken, "last_used_at")
revoked = instant(AccessToken, "revoked_at")


@admin.display(description=_("rights"))
def rights(row: AccessToken) -> str:
    """Show what the bearer of a token may do."""
    granted = access_tokens.rights_of(row)
    return ", ".join(str(word) for right, word in _RIGHTS.items() if right in granted) or NOTHING


class TokenForm(forms.Form):
    """Ask what a token is for."""

    name = forms.CharField(label=_("Name"), max_length=255)
    rights = forms.MultipleChoiceField(
        label=_("Rights"),
        initial=[str(Right.READ)],
        widget=forms.CheckboxSelectMultiple,
        help_text=_("You can grant only the rights that you have."),
    )
    expires_at = FutureField(label=_("Expires"), past=_("This is over."))

    def __init__(self, held: Collection[Right], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(str(right), word) for right, word in _RIGHTS.items() if right in held]
        self.fields["rights"].choices = choices  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        """Refuse what cannot be stored, and a name that is taken."""
        name = str(self.cleaned_data["name"])
        if flaw_of_text(name, one_line=True) is not None:
            raise ValidationError(_("This cannot be a name."))
        if access_tokens.listed().filter(name=name).exists():
            raise ValidationError(_("A token of that name is there already."))
        return name


class AccessTokenAdmin(ReadOnlyAdmin):
    """Let people make tokens, which are shown once, and revoke them."""

    actions = ["revoke"]
    list_display: Columns = ["name", rights, created, "author", expires, used, revoked]
    search_fields = ["name", "author"]
    ordering = ["name"]
    sortable_by = ()
    fields: ClassVar[Columns] = list_display
    add_form_template = "admin/django_declarative_cron/accesstoken/add.html"
    revoke_template = "admin/django_declarative_cron/accesstoken/revoke.html"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may make tokens."""
        return self.may_do(request, "add_accesstoken")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may revoke tokens."""
        return self.may_do(request, "revoke_accesstoken")

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Ask for a token's name and rights; show it, this once, when it is made."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = TokenForm(_held(request), request.POST if request.method == "POST" else None)
        made = self._made(request, form) if form.is_bound and form.is_valid() else None
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Add access token"),
            "opts": self.opts,
            "form": form,
            "errors": form.errors,
            "token": "" if made is None else str(made),
            "list_url": self.address(self.model, "changelist"),
            "media": self.media,
            "has_view_permission": True,
            "original": gettext("Add access token"),
        }
        return TemplateResponse(request, self.add_form_template, context)

    def _made(self, request: HttpRequest, form: TokenForm) -> Token | None:
        given = form.cleaned_data
        granted = [Right(right) for right in given["rights"]]
        try:
            made = access_tokens.create(
                given["name"],
                granted,
                system_clock.now(),
                author=str(request.user),
                expires_at=given["expires_at"],
            )
        except access_tokens.TakenError:
            form.add_error("name", _("A token of that name is there already."))
            return None
        row = access_tokens.listed().get(key=made.key)
        self.log_addition(request, row, [{"added": {}}])
        return made

    @admin.action(description=_("Revoke"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[AccessToken]) -> HttpResponse | None:
        """Ask first, then make the tokens chosen void for good."""
        if "confirmed" not in request.POST:
            return self._confirm(request, queryset)
        for row in queryset:
            if access_tokens.revoke(row.name or "", system_clock.now()):
                self.log_change(request, row, gettext("Revoked."))
        self.message_user(request, gettext("The tokens are void."), messages.SUCCESS)
        return None

    def _confirm(self, request: HttpRequest, rows: QuerySet[AccessToken]) -> HttpResponse:
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Revoke"),
            "opts": self.opts,
            "rows": rows,
            "checkbox": ACTION_CHECKBOX_NAME,
            "list_url": self.address(self.model, "changelist"),
            "media": self.media,
            "has_view_permission": True,
            "original": gettext("Revoke"),
        }
        return TemplateResponse(request, self.revoke_template, context)


def _held(request: HttpRequest) -> list[Right]:
    return [right for right in Right if request.user.has_perm(PERMISSIONS[right])]
