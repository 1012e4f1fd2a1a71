"""The tables: fields, constraints and indexes; no behaviour.

Every time is an aware UTC instant. Only ``store/`` writes these rows.
"""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from ..fields import ColumnTypes, InstantField, NameField
from ..formatting import format_instant
from .access import AccessToken
from .acts import TaskOverride
from .outbox import OutboxEvent

__all__ = [
    "AccessToken",
    "OutboxEvent",
    "Outcome",
    "RegistrationPart",
    "RegistrationSet",
    "ScheduledTask",
    "SchedulerInstance",
    "SchedulerState",
    "TaskOverride",
    "TaskRun",
]


class Outcome(models.TextChoices):
    """How a run, or an occurrence that did not run, ended; or that it has not yet."""

    WAITING = "waiting", _("queued")
    RUNNING = "running", _("running")
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    TIMED_OUT = "timed_out", _("timed out")
    INTERRUPTED = "interrupted", _("interrupted")
    CANCELLED = "cancelled", _("cancelled")
    SKIPPED = "skipped", _("skipped")
    MISSED = "missed", _("missed")


class Origin(models.TextChoices):
    """Where a task is declared."""

    SETTINGS = "settings", _("settings")
    HTTP = "http", _("HTTP")


class SchedulerState(models.Model):
    """One deployment: its leader and its active registration set."""

    deployment = NameField(_("deployment"), max_length=255, unique=True)
    identifier = models.UUIDField(_("identifier"), default=uuid.uuid4, editable=False)
    term = models.BigIntegerField(_("term"), default=0)
    leader = models.ForeignKey(
        "SchedulerInstance",
        models.SET_NULL,
        verbose_name=_("leader"),
        null=True,
        blank=True,
        related_name="+",
    )
    lease_expires_at = InstantField(_("lease expires at"), null=True, blank=True)
    led_since = InstantField(_("led by this leader since"), null=True, blank=True)
    watched_since = InstantField(_("watched without a gap since"), null=True, blank=True)
    watched_until = InstantField(_("watched without a gap until"), null=True, blank=True)
    digest = models.CharField(_("digest of the active set"), max_length=64, blank=True)
    generation = models.BigIntegerField(_("generation of the active set"), default=0)
    epoch = models.BigIntegerField(_("newest epoch given to a task"), default=0)
    release = models.CharField(_("release"), max_length=255, blank=True)
    initialized_at = InstantField(_("initialised at"), null=True, blank=True)
    history_from = InstantField(_("history complete from"), null=True, blank=True)

    class Meta:
        verbose_name = _("deployment")
        verbose_name_plural = _("deployments")
        default_permissions = ("view",)
        constraints = [ColumnTypes(name="ddc_state_types")]

    def __str__(self) -> str:
        return self.deployment or ""


class SchedulerInstance(models.Model):
    """One process that runs tasks, known by a UUID of its own."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    scheduler = models.ForeignKey(
        SchedulerState, models.CASCADE, verbose_name=_("deployment"), related_name="instances"
    )
    host = models.CharField(_("host"), max_length=255)
    pid = models.IntegerField(_("process id"))
    release = models.CharField(_("release"), max_length=255, blank=True)
    digest = models.CharField(_("digest of its registration set"), max_length=64, blank=True)
    started_at = InstantField(_("started at"))
    heartbeat_at = InstantField(_("last heartbeat at"))
    watched_since = InstantField(_("watched without a gap since"), null=True, blank=True)
    mute_since = InstantField(_("unresponsive since"), null=True, blank=True)
    initialized_at = InstantField(_("initialised at"), null=True, blank=True)
    stop_requested_at = InstantField(_("stop requested at"), null=True, blank=True)
    stopped_at = InstantField(_("stopped at"), null=True, blank=True)
    lapses = models.JSONField(_("time it did not live through"), default=list, blank=True)

    class Meta:
        verbose_name = _("scheduler instance")
        verbose_name_plural = _("scheduler instances")
        default_permissions = ("view",)
        permissions = [("notify_schedulerinstance", _("Can send test notifications"))]
        constraints = [ColumnTypes(name="ddc_instance_types")]
        indexes = [
            models.Index(
                fields=["scheduler", "stopped_at", "heartbeat_at"], name="ddc_instance_alive"
            )
        ]

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"


class RegistrationSet(models.Model):
    """One set of registrations, from when it became the active one."""

    scheduler = models.ForeignKey(
        SchedulerState,
        models.CASCADE,
        verbose_name=_("deployment"),
        related_name="registration_sets",
        db_index=False,
    )
    generation = models.BigIntegerField(_("generation"))
    registered_at = InstantField(_("registered at"))
    after_run = models.BigIntegerField(_("newest run before it"), default=0)
    instance = models.ForeignKey(
        SchedulerInstance,
        models.SET_NULL,
        verbose_name=_("scheduler instance"),
        null=True,
        blank=True,
        related_name="+",
    )
    tasks = models.JSONField(_("registrations"), default=list)
    parts = models.JSONField(_("registrations"), default=list)

    class Meta:
        verbose_name = _("registration set")
        verbose_name_plural = _("registration sets")
        ordering = ["-generation"]
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["scheduler", "generation"], name="ddc_registration_set_once"
            ),
            ColumnTypes(name="ddc_registration_set_types"),
        ]

    def __str__(self) -> str:
        return f"{self.scheduler}: {self.generation}"


class RegistrationPart(models.Model):
    """Some registrations of sets too large for one row; sets that have them all share it."""

    scheduler = models.ForeignKey(
        SchedulerState,
        models.CASCADE,
        verbose_name=_("deployment"),
        related_name="registration_parts",
        db_index=False,
    )
    digest = models.CharField(_("digest of its registration set"), max_length=64)
    tasks = models.JSONField(_("registrations"), default=list)

    class Meta:
        verbose_name = verbose_name_plural = _("registrations")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["scheduler", "digest"], name="ddc_registration_part_once"
            ),
            ColumnTypes(name="ddc_registration_part_types"),
        ]

    def __str__(self) -> str:
        return f"{self.scheduler}: {self.digest}"


class ScheduledTask(models.Model):
    """One declared task: its declaration as text, and its state."""

    Origin = Origin

    scheduler = models.ForeignKey(
        SchedulerState,
        models.CASCADE,
        verbose_name=_("deployment"),
        related_name="tasks",
        db_index=False,
    )
    scheduler_identifier = models.UUIDField(_("scheduler identifier"))
    name = NameField(_("name"), max_length=255)
    origin = models.CharField(
        _("origin"), max_length=16, choices=Origin.choices, default=Origin.SETTINGS
    )
    registered_by = models.CharField(_("registered by"), max_length=255, blank=True)

    cron = models.TextField(_("cron expression"))
    timezone = models.CharField(_("time zone"), max_length=255)
    retry_delay = models.DurationField(_("retry delay"), null=True, blank=True)
    callback = models.TextField(_("callback"))
    enabled = models.BooleanField(_("enabled"), default=True)
    description = models.TextField(_("description"), blank=True)
    declaration = models.JSONField(_("declaration"), default=dict)
    digest = models.CharField(_("digest of the declaration"), max_length=64)

    created_at = InstantField(_("first registered at"), null=True, blank=True)
    registered_at = InstantField(_("registered at"))
    last_attempt_at = InstantField(_("last attempt at"), null=True, blank=True)
    last_success_at = InstantField(_("last success at"), null=True, blank=True)
    pending_retry_until = InstantField(_("pending retry until"), null=True, blank=True)
    discharged_at = InstantField(_("accounted for up to"), null=True, blank=True)
    occurrence_at = InstantField(_("occurrence of the newest run"), null=True, blank=True)
    attempt = models.PositiveIntegerField(_("attempt of the newest run"), default=0)
    failures = models.PositiveIntegerField(_("failures in a row"), default=0)
    interruptions = models.PositiveIntegerField(_("interrupted runs in a row"), default=0)
    freed_at = InstantField(_("end of the newest run"), null=True, blank=True)
    boot_at = InstantField(_("occurrence owed since registration"), null=True, blank=True)
    orphaned = models.BooleanField(_("interrupted, to be restarted"), default=False)
    paused_since = InstantField(_("paused since"), null=True, blank=True)
    paused_until = InstantField(_("paused until"), null=True, blank=True)
    run_requested_at = InstantField(_("run requested at"), null=True, blank=True)
    skip_at = InstantField(_("occurrence to be skipped"), null=True, blank=True)
    running_run = models.BigIntegerField(_("run in progress"), null=True, blank=True)
    waiting = models.PositiveIntegerField(_("runs waiting"), default=0)
    run_count = models.BigIntegerField(_("number of runs"), default=0)
    epoch = models.BigIntegerField(_("epoch"), default=0)
    history_from = InstantField(_("history complete from"), null=True, blank=True)

    next_run_at = InstantField(_("next run at"), null=True, blank=True)
    wake_at = InstantField(_("to be considered at"), null=True, blank=True)
    broken_reason = models.TextField(_("set aside because"), blank=True)

    class Meta:
        verbose_name = _("scheduled task")
        verbose_name_plural = _("scheduled tasks")
        ordering = ["name"]
        default_permissions = ("view",)
        permissions = [
            ("run_scheduledtask", _("Can run scheduled tasks now")),
            ("pause_scheduledtask", _("Can pause scheduled tasks")),
            ("resume_scheduledtask", _("Can resume scheduled tasks")),
            ("skip_next_scheduledtask", _("Can skip the next run of scheduled tasks")),
            ("retry_now_scheduledtask", _("Can bring pending retries forward")),
            ("clear_retry_scheduledtask", _("Can clear the retry state of scheduled tasks")),
            ("register_scheduledtask", _("Can register scheduled tasks over HTTP")),
        ]
        constraints = [
            models.UniqueConstraint(fields=["scheduler", "name"], name="ddc_task_name_unique"),
            ColumnTypes(name="ddc_task_types"),
        ]
        indexes = [models.Index(fields=["scheduler", "wake_at"], name="ddc_task_wake")]

    def __str__(self) -> str:
        return self.name or ""


class TaskRun(models.Model):
    """One run, or one occurrence (or a range of them) that did not run.

    Active is a run that runs or waits: it holds a slot. The slot is the task's name where
    the task runs one at a time, and the name with an ending of its own elsewhere.
    """

    Outcome = Outcome

    scheduler = models.ForeignKey(
        SchedulerState,
        models.CASCADE,
        verbose_name=_("deployment"),
        related_name="runs",
        db_index=False,
    )
    task_name = NameField(_("task name"), max_length=255)
    origin = models.CharField(
        _("origin"), max_length=16, choices=Origin.choices, default=Origin.SETTINGS
    )
    scheduled_for = InstantField(_("scheduled for"))
    scheduled_from = InstantField(_("first of a range"), null=True, blank=True)
    count = models.PositiveBigIntegerField(_("occurrences"), default=1)
    started_at = InstantField(_("started at"), null=True, blank=True)
    finished_at = InstantField(_("finished at"), null=True, blank=True)
    outcome = models.CharField(_("outcome"), max_length=16, choices=Outcome.choices)
    reason = models.CharField(_("reason"), max_length=32)
    attempt = models.PositiveIntegerField(_("attempt"), default=0)
    error = models.TextField(_("error"), blank=True)
    traceback = models.TextField(_("traceback"), blank=True)
    result = models.JSONField(_("returned value"), null=True, blank=True)
    log = models.TextField(_("log"), blank=True)
    output = models.TextField(_("output"), blank=True)
    detail = models.JSONField(_("detail"), null=True, blank=True)
    instance = models.ForeignKey(
        SchedulerInstance,
        models.SET_NULL,
        verbose_name=_("scheduler instance"),
        null=True,
        blank=True,
        related_name="runs",
        db_index=False,
    )
    term = models.BigIntegerField(_("term"), default=0)
    epoch = models.BigIntegerField(_("epoch"), null=True, blank=True)
    cancel_requested_at = InstantField(_("cancellation requested at"), null=True, blank=True)
    running_slot = NameField(_("slot while active"), max_length=300, null=True, blank=True)

    job = models.JSONField(_("job for an external worker"), null=True, blank=True)
    waits_in = NameField(_("waits in queue"), max_length=255, null=True, blank=True)
    worker = models.CharField(_("external worker"), max_length=255, blank=True)
    reservation = models.UUIDField(_("reservation"), null=True, blank=True, editable=False)
    reserved_until = InstantField(_("reserved until"), null=True, blank=True)

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        ordering = ["-id"]
        default_permissions = ("view",)
        permissions = [
            ("work_taskrun", _("Can fetch and report runs as an external worker")),
            ("cancel_taskrun", _("Can cancel runs")),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["scheduler", "running_slot"], name="ddc_run_one_at_a_time"
            ),
            models.UniqueConstraint(
                fields=["scheduler", "task_name", "scheduled_for", "attempt", "epoch", "reason"],
                name="ddc_run_once_per_attempt",
            ),
            ColumnTypes(name="ddc_run_types"),
        ]
        indexes = [
            models.Index(fields=["scheduler", "task_name", "-id"], name="ddc_run_history"),
            # Only waiting runs name a queue, so the index stays as short as the queue.
            models.Index(fields=["scheduler", "waits_in", "id"], name="ddc_run_waiting"),
            # Each idle tick queries the runs of its instance that have to end.
            models.Index(fields=["instance", "cancel_requested_at"], name="ddc_run_to_end"),
            # For recent failures, independent of the length of the history.
            models.Index(fields=["scheduler", "outcome", "finished_at"], name="ddc_run_outcome"),
        ]

    def __str__(self) -> str:
        at = format_instant(self.scheduled_for, timezone.get_current_timezone())
        return f"{self.task_name} {at}"
