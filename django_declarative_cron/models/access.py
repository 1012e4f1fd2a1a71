"""Access tokens for the HTTP binding."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..fields import ColumnTypes, InstantField, NameField


class AccessToken(models.Model):
    """One bearer token of the HTTP binding; only its public part and a digest are stored."""

    scheduler = models.ForeignKey(
        "SchedulerState",
        models.CASCADE,
        verbose_name=_("deployment"),
        related_name="tokens",
        db_index=False,
    )
    name = NameField(_("name"), max_length=255)
    key = NameField(_("public part"), max_length=32, unique=True, editable=False)
    digest = models.CharField(_("digest of the secret part"), max_length=64, editable=False)
    may_read = models.BooleanField(_("may read"), default=True)
    may_register = models.BooleanField(_("may register"), default=False)
    may_work = models.BooleanField(_("may work"), default=False)
    author = models.CharField(_("created by"), max_length=255, blank=True)
    created_at = InstantField(_("created at"))
    expires_at = InstantField(_("expires at"), null=True, blank=True)
    last_used_at = InstantField(_("last used at"), null=True, blank=True)
    revoked_at = InstantField(_("revoked at"), null=True, blank=True)

    class Meta:
        verbose_name = _("access token")
        verbose_name_plural = _("access tokens")
        ordering = ["name"]
        default_permissions = ("view", "add")
        permissions = [("revoke_accesstoken", _("Can revoke access tokens"))]
        constraints = [
            models.UniqueConstraint(fields=["scheduler", "name"], name="ddc_token_name_unique"),
            ColumnTypes(name="ddc_token_types"),
        ]

    def __str__(self) -> str:
        return self.name or ""
