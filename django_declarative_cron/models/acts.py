"""Operator actions on tasks, stored separately from the declarations."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..fields import ColumnTypes, InstantField, NameField


class TaskOverride(models.Model):
    """One person's act on a task name, or the scheduler's own; it outlives the task's row.

    The scheduler's own have a reason and no author.
    """

    class Kind(models.TextChoices):
        """The kind of an operator action."""

        PAUSE = "pause", _("paused")
        RESUME = "resume", _("resumed")
        RUN = "run", _("run requested")
        CLEAR_RETRY = "clear_retry", _("retry state cleared")
        CANCEL = "cancel", _("cancellation requested")
        SKIP = "skip", _("next run skipped")
        UNSKIP = "unskip", _("skip undone")
        BACKFILL = "backfill", _("backfill requested")
        REMOVE = "remove", _("task removed")

    scheduler = models.ForeignKey(
        "SchedulerState",
        models.CASCADE,
        verbose_name=_("deployment"),
        related_name="overrides",
        db_index=False,
    )
    task_name = NameField(_("task name"), max_length=255)
    kind = models.CharField(_("action"), max_length=16, choices=Kind.choices)
    until = InstantField(_("until"), null=True, blank=True)
    reason = models.CharField(_("reason"), max_length=32, blank=True)
    note = models.TextField(_("note"), blank=True)
    author = models.CharField(_("author"), max_length=255, blank=True)
    author_key = models.CharField(_("key of the author"), max_length=255, blank=True)
    created_at = InstantField(_("at"))
    ended_at = InstantField(_("ended at"), null=True, blank=True)

    class Meta:
        verbose_name = _("audit log entry")
        verbose_name_plural = _("audit log entries")
        ordering = ["-id"]
        default_permissions = ("view",)
        constraints = [ColumnTypes(name="ddc_override_types")]
        indexes = [
            models.Index(fields=["scheduler", "task_name", "-id"], name="ddc_override_history"),
            models.Index(fields=["scheduler", "kind", "ended_at"], name="ddc_override_open"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.task_name}"
