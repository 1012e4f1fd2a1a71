"""Access tokens of the HTTP API: shown once when they are created, and revoked."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..core.declarations.values import flaw_of_text
from ..core.http_api import PERMISSIONS, Right, Token
from ..models import AccessToken
from ..runtime.clock import system_clock
from ..store import access_tokens
from .actions import FutureField
from .base import NOTHING, TEMPLATES, Columns, ReadOnlyModelAdmin, instant

_RIGHTS = {Right.READ: _("read"), Right.REGISTER: _("register"), Right.WORK: _("work")}

created = instant(AccessToken, "created_at")
expires = instant(AccessToken, "expires_at")
used = instant(AccessToken, "last_used_at")
revoked = instant(AccessToken, "revoked_at")


@admin.display(description=_("rights"))
def rights(row: AccessToken) -> str:
    granted = access_tokens.rights_of(row)
    return ", ".join(str(word) for right, word in _RIGHTS.items() if right in granted) or NOTHING


class TokenForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=255)
    rights = forms.MultipleChoiceField(
        label=_("Rights"),
        initial=[str(Right.READ)],
        widget=forms.CheckboxSelectMultiple,
        help_text=_("You can grant only the rights that you have."),
    )
    expires_at = FutureField(label=_("Expires"), past=_("The date must be in the future."))

    def __init__(self, held: Collection[Right], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(str(right), word) for right, word in _RIGHTS.items() if right in held]
        self.fields["rights"].choices = choices  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        if flaw_of_text(name, one_line=True) is not None:
            raise ValidationError(_("The name contains invalid characters."))
        return name


class AccessTokenAdmin(ReadOnlyModelAdmin):
    """Let users create tokens, which are shown once, and revoke them."""

    actions = ["revoke"]
    list_display: Columns = ["name", rights, created, "author", expires, used, revoked]
    search_fields = ["name", "author"]
    ordering = ["name"]
    sortable_by = ()
    fields: ClassVar[Columns] = list_display
    add_form_template = f"{TEMPLATES}/accesstoken/add.html"
    revoke_template = f"{TEMPLATES}/accesstoken/revoke.html"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may_act(request, "add_accesstoken")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request, "revoke_accesstoken")

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Ask for the name and rights of a token, and show the token once."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = TokenForm(_held(request), request.POST if request.method == "POST" else None)
        token = self._create(request, form) if form.is_bound and form.is_valid() else None
        context = {
            "form": form,
            "errors": form.errors,
            "token": "" if token is None else str(token),
        }
        title = gettext("Add access token")
        return self.extra_page(request, self.add_form_template, title, context)

    def _create(self, request: HttpRequest, form: TokenForm) -> Token | None:
        given = form.cleaned_data
        granted = [Right(right) for right in given["rights"]]
        try:
            token = access_tokens.create(
                given["name"],
                granted,
                system_clock.now(),
                author=str(request.user),
                expires_at=given["expires_at"],
            )
        except access_tokens.TakenError:
            form.add_error("name", _("A token with this name exists already."))
            return None
        row = access_tokens.listed().get(key=token.key)
        self.log_addition(request, row, [{"added": {}}])
        return token

    @admin.action(description=_("Revoke"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[AccessToken]) -> HttpResponse | None:
        """Ask for confirmation, then revoke the selected tokens."""
        if "confirmed" not in request.POST:
            context = {"rows": queryset, "checkbox": ACTION_CHECKBOX_NAME}
            return self.extra_page(request, self.revoke_template, gettext("Revoke"), context)
        for row in queryset:
            if access_tokens.revoke(row.name or "", system_clock.now()):
                self.log_change(request, row, gettext("Revoked."))
        self.message_user(request, gettext("The tokens were revoked."), messages.SUCCESS)
        return None


def _held(request: HttpRequest) -> list[Right]:
    """Return the rights that the user has; only these can be granted."""
    return [right for right in Right if request.user.has_perm(PERMISSIONS[right])]
