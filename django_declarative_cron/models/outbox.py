"""Events on their way to a receiver outside."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..fields import ColumnTypes, InstantField, NameField


class OutboxEvent(models.Model):
    """One event to post; it is written in the transaction of the change that it reports."""

    scheduler = models.ForeignKey(
        "SchedulerState",
        models.CASCADE,
        verbose_name=_("deployment"),
        related_name="outbox",
        db_index=False,
    )
    event_id = models.UUIDField(_("id of the event"), editable=False)
    type = models.CharField(_("type"), max_length=64)
    task_name = NameField(_("task name"), max_length=255)
    body = models.TextField(_("body"))
    created_at = InstantField(_("happened at"))
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    next_attempt_at = InstantField(_("to be tried again at"), null=True, blank=True)
    error = models.TextField(_("newest refusal"), blank=True)
    refused_since = InstantField(_("refused since"), null=True, blank=True)
    claimed_by = models.UUIDField(_("being delivered by"), null=True, blank=True, editable=False)
    claimed_until = InstantField(_("being delivered until"), null=True, blank=True)
    dead_lettered_at = InstantField(_("dead-lettered at"), null=True, blank=True)

    class Meta:
        verbose_name = _("event to be delivered")
        verbose_name_plural = _("events to be delivered")
        ordering = ["id"]
        default_permissions = ("view",)
        constraints = [ColumnTypes(name="ddc_outbox_types")]
        # A task's events are posted in order, so the query selects the oldest of each task.
        indexes = [models.Index(fields=["scheduler", "task_name", "id"], name="ddc_outbox_order")]

    def __str__(self) -> str:
        return f"{self.type}: {self.task_name}"
