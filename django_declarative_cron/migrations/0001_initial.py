# The tables of the first release.

import uuid

import django.db.models.deletion
from django.db import migrations, models

import django_declarative_cron.fields


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="SchedulerInstance",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("host", models.CharField(max_length=255, verbose_name="host")),
                ("pid", models.IntegerField(verbose_name="process id")),
                ("release", models.CharField(blank=True, max_length=255, verbose_name="release")),
                (
                    "digest",
                    models.CharField(
                        blank=True, max_length=64, verbose_name="digest of its registration set"
                    ),
                ),
                (
                    "started_at",
                    django_declarative_cron.fields.InstantField(verbose_name="started at"),
                ),
                (
                    "heartbeat_at",
                    django_declarative_cron.fields.InstantField(verbose_name="last heartbeat at"),
                ),
                (
                    "watched_since",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="watched without a gap since"
                    ),
                ),
                (
                    "mute_since",
                    django_declarative_cron.fields.InstantField(
                        blank=True,
                        null=True,
                        verbose_name="unresponsive since",
                    ),
                ),
                (
                    "initialized_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="initialised at"
                    ),
                ),
                (
                    "stop_requested_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="stop requested at"
                    ),
                ),
                (
                    "stopped_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="stopped at"
                    ),
                ),
                (
                    "lapses",
                    models.JSONField(
                        blank=True, default=list, verbose_name="time it did not live through"
                    ),
                ),
            ],
            options={
                "verbose_name": "scheduler instance",
                "verbose_name_plural": "scheduler instances",
                "permissions": [("notify_schedulerinstance", "Can send test notifications")],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="SchedulerState",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "deployment",
                    django_declarative_cron.fields.NameField(
                        max_length=255, unique=True, verbose_name="deployment"
                    ),
                ),
                (
                    "identifier",
                    models.UUIDField(default=uuid.uuid4, editable=False, verbose_name="identifier"),
                ),
                ("term", models.BigIntegerField(default=0, verbose_name="term")),
                (
                    "lease_expires_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="lease expires at"
                    ),
                ),
                (
                    "led_since",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="led by this leader since"
                    ),
                ),
                (
                    "watched_since",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="watched without a gap since"
                    ),
                ),
                (
                    "watched_until",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="watched without a gap until"
                    ),
                ),
                (
                    "digest",
                    models.CharField(
                        blank=True, max_length=64, verbose_name="digest of the active set"
                    ),
                ),
                (
                    "generation",
                    models.BigIntegerField(default=0, verbose_name="generation of the active set"),
                ),
                (
                    "epoch",
                    models.BigIntegerField(default=0, verbose_name="newest epoch given to a task"),
                ),
                ("release", models.CharField(blank=True, max_length=255, verbose_name="release")),
                (
                    "initialized_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="initialised at"
                    ),
                ),
                (
                    "history_from",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="history complete from"
                    ),
                ),
                (
                    "leader",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="django_declarative_cron.schedulerinstance",
                        verbose_name="leader",
                    ),
                ),
            ],
            options={
                "verbose_name": "deployment",
                "verbose_name_plural": "deployments",
                "default_permissions": ("view",),
            },
        ),
        migrations.AddField(
            model_name="schedulerinstance",
            name="scheduler",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="instances",
                to="django_declarative_cron.schedulerstate",
                verbose_name="deployment",
            ),
        ),
        migrations.CreateModel(
            name="ScheduledTask",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("scheduler_identifier", models.UUIDField(verbose_name="scheduler identifier")),
                (
                    "name",
                    django_declarative_cron.fields.NameField(max_length=255, verbose_name="name"),
                ),
                (
                    "origin",
                    models.CharField(
                        choices=[("settings", "settings"), ("http", "HTTP")],
                        default="settings",
                        max_length=16,
                        verbose_name="origin",
                    ),
                ),
                (
                    "registered_by",
                    models.CharField(blank=True, max_length=255, verbose_name="registered by"),
                ),
                ("cron", models.TextField(verbose_name="cron expression")),
                ("timezone", models.CharField(max_length=255, verbose_name="time zone")),
                (
                    "retry_delay",
                    models.DurationField(blank=True, null=True, verbose_name="retry delay"),
                ),
                ("callback", models.TextField(verbose_name="callback")),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                ("description", models.TextField(blank=True, verbose_name="description")),
                ("declaration", models.JSONField(default=dict, verbose_name="declaration")),
                (
                    "digest",
                    models.CharField(max_length=64, verbose_name="digest of the declaration"),
                ),
                (
                    "created_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="first registered at"
                    ),
                ),
                (
                    "registered_at",
                    django_declarative_cron.fields.InstantField(verbose_name="registered at"),
                ),
                (
                    "last_attempt_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="last attempt at"
                    ),
                ),
                (
                    "last_success_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="last success at"
                    ),
                ),
                (
                    "pending_retry_until",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="pending retry until"
                    ),
                ),
                (
                    "discharged_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="accounted for up to"
                    ),
                ),
                (
                    "occurrence_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="occurrence of the newest run"
                    ),
                ),
                (
                    "attempt",
                    models.PositiveIntegerField(
                        default=0, verbose_name="attempt of the newest run"
                    ),
                ),
                (
                    "failures",
                    models.PositiveIntegerField(default=0, verbose_name="failures in a row"),
                ),
                (
                    "interruptions",
                    models.PositiveIntegerField(
                        default=0, verbose_name="interrupted runs in a row"
                    ),
                ),
                (
                    "freed_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="end of the newest run"
                    ),
                ),
                (
                    "boot_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="occurrence owed since registration"
                    ),
                ),
                (
                    "orphaned",
                    models.BooleanField(default=False, verbose_name="interrupted, to be restarted"),
                ),
                (
                    "paused_since",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="paused since"
                    ),
                ),
                (
                    "paused_until",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="paused until"
                    ),
                ),
                (
                    "run_requested_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="run requested at"
                    ),
                ),
                (
                    "skip_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="occurrence to be skipped"
                    ),
                ),
                (
                    "running_run",
                    models.BigIntegerField(blank=True, null=True, verbose_name="run in progress"),
                ),
                ("waiting", models.PositiveIntegerField(default=0, verbose_name="runs waiting")),
                ("run_count", models.BigIntegerField(default=0, verbose_name="number of runs")),
                ("epoch", models.BigIntegerField(default=0, verbose_name="epoch")),
                (
                    "history_from",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="history complete from"
                    ),
                ),
                (
                    "next_run_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="next run at"
                    ),
                ),
                (
                    "wake_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="to be considered at"
                    ),
                ),
                ("broken_reason", models.TextField(blank=True, verbose_name="set aside because")),
                (
                    "scheduler",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tasks",
                        to="django_declarative_cron.schedulerstate",
                        verbose_name="deployment",
                    ),
                ),
            ],
            options={
                "verbose_name": "scheduled task",
                "verbose_name_plural": "scheduled tasks",
                "ordering": ["name"],
                "permissions": [
                    ("run_scheduledtask", "Can run scheduled tasks now"),
                    ("pause_scheduledtask", "Can pause scheduled tasks"),
                    ("resume_scheduledtask", "Can resume scheduled tasks"),
                    ("skip_next_scheduledtask", "Can skip the next run of scheduled tasks"),
                    ("retry_now_scheduledtask", "Can bring pending retries forward"),
                    ("clear_retry_scheduledtask", "Can clear the retry state of scheduled tasks"),
                    ("register_scheduledtask", "Can register scheduled tasks over HTTP"),
                ],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="RegistrationSet",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("generation", models.BigIntegerField(verbose_name="generation")),
                (
                    "registered_at",
                    django_declarative_cron.fields.InstantField(verbose_name="registered at"),
                ),
                (
                    "after_run",
                    models.BigIntegerField(default=0, verbose_name="newest run before it"),
                ),
                ("tasks", models.JSONField(default=list, verbose_name="registrations")),
                ("parts", models.JSONField(default=list, verbose_name="registrations")),
                (
                    "instance",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="django_declarative_cron.schedulerinstance",
                        verbose_name="scheduler instance",
                    ),
                ),
                (
                    "scheduler",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="registration_sets",
                        to="django_declarative_cron.schedulerstate",
                        verbose_name="deployment",
                    ),
                ),
            ],
            options={
                "verbose_name": "registration set",
                "verbose_name_plural": "registration sets",
                "ordering": ["-generation"],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="RegistrationPart",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "digest",
                    models.CharField(max_length=64, verbose_name="digest of its registration set"),
                ),
                ("tasks", models.JSONField(default=list, verbose_name="registrations")),
                (
                    "scheduler",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="registration_parts",
                        to="django_declarative_cron.schedulerstate",
                        verbose_name="deployment",
                    ),
                ),
            ],
            options={
                "verbose_name": "registrations",
                "verbose_name_plural": "registrations",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="OutboxEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("event_id", models.UUIDField(editable=False, verbose_name="id of the event")),
                ("type", models.CharField(max_length=64, verbose_name="type")),
                (
                    "task_name",
                    django_declarative_cron.fields.NameField(
                        max_length=255, verbose_name="task name"
                    ),
                ),
                ("body", models.TextField(verbose_name="body")),
                (
                    "created_at",
                    django_declarative_cron.fields.InstantField(verbose_name="happened at"),
                ),
                ("attempts", models.PositiveIntegerField(default=0, verbose_name="attempts")),
                (
                    "next_attempt_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="to be tried again at"
                    ),
                ),
                ("error", models.TextField(blank=True, verbose_name="newest refusal")),
                (
                    "refused_since",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="refused since"
                    ),
                ),
                (
                    "claimed_by",
                    models.UUIDField(
                        blank=True, editable=False, null=True, verbose_name="being delivered by"
                    ),
                ),
                (
                    "claimed_until",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="being delivered until"
                    ),
                ),
                (
                    "dead_lettered_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="dead-lettered at"
                    ),
                ),
                (
                    "scheduler",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="outbox",
                        to="django_declarative_cron.schedulerstate",
                        verbose_name="deployment",
                    ),
                ),
            ],
            options={
                "verbose_name": "event to be delivered",
                "verbose_name_plural": "events to be delivered",
                "ordering": ["id"],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="AccessToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    django_declarative_cron.fields.NameField(max_length=255, verbose_name="name"),
                ),
                (
                    "key",
                    django_declarative_cron.fields.NameField(
                        editable=False, max_length=32, unique=True, verbose_name="public part"
                    ),
                ),
                (
                    "digest",
                    models.CharField(
                        editable=False, max_length=64, verbose_name="digest of the secret part"
                    ),
                ),
                ("may_read", models.BooleanField(default=True, verbose_name="may read")),
                ("may_register", models.BooleanField(default=False, verbose_name="may register")),
                ("may_work", models.BooleanField(default=False, verbose_name="may work")),
                ("author", models.CharField(blank=True, max_length=255, verbose_name="created by")),
                (
                    "created_at",
                    django_declarative_cron.fields.InstantField(verbose_name="created at"),
                ),
                (
                    "expires_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="expires at"
                    ),
                ),
                (
                    "last_used_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="last used at"
                    ),
                ),
                (
                    "revoked_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="revoked at"
                    ),
                ),
                (
                    "scheduler",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tokens",
                        to="django_declarative_cron.schedulerstate",
                        verbose_name="deployment",
                    ),
                ),
            ],
            options={
                "verbose_name": "access token",
                "verbose_name_plural": "access tokens",
                "ordering": ["name"],
                "permissions": [("revoke_accesstoken", "Can revoke access tokens")],
                "default_permissions": ("view", "add"),
            },
        ),
        migrations.CreateModel(
            name="TaskOverride",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "task_name",
                    django_declarative_cron.fields.NameField(
                        max_length=255, verbose_name="task name"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("pause", "paused"),
                            ("resume", "resumed"),
                            ("run", "run requested"),
                            ("clear_retry", "retry state cleared"),
                            ("cancel", "cancellation requested"),
                            ("skip", "next run skipped"),
                            ("unskip", "skip undone"),
                            ("backfill", "backfill requested"),
                            ("remove", "task removed"),
                        ],
                        max_length=16,
                        verbose_name="action",
                    ),
                ),
                (
                    "until",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="until"
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=32, verbose_name="reason")),
                ("note", models.TextField(blank=True, verbose_name="note")),
                ("author", models.CharField(blank=True, max_length=255, verbose_name="author")),
                (
                    "author_key",
                    models.CharField(blank=True, max_length=255, verbose_name="key of the author"),
                ),
                ("created_at", django_declarative_cron.fields.InstantField(verbose_name="at")),
                (
                    "ended_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="ended at"
                    ),
                ),
                (
                    "scheduler",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="overrides",
                        to="django_declarative_cron.schedulerstate",
                        verbose_name="deployment",
                    ),
                ),
            ],
            options={
                "verbose_name": "audit log entry",
                "verbose_name_plural": "audit log entries",
                "ordering": ["-id"],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="TaskRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "task_name",
                    django_declarative_cron.fields.NameField(
                        max_length=255, verbose_name="task name"
                    ),
                ),
                (
                    "origin",
                    models.CharField(
                        choices=[("settings", "settings"), ("http", "HTTP")],
                        default="settings",
                        max_length=16,
                        verbose_name="origin",
                    ),
                ),
                (
                    "scheduled_for",
                    django_declarative_cron.fields.InstantField(verbose_name="scheduled for"),
                ),
                (
                    "scheduled_from",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="first of a range"
                    ),
                ),
                ("count", models.PositiveBigIntegerField(default=1, verbose_name="occurrences")),
                (
                    "started_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="started at"
                    ),
                ),
                (
                    "finished_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="finished at"
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("waiting", "queued"),
                            ("running", "running"),
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("timed_out", "timed out"),
                            ("interrupted", "interrupted"),
                            ("cancelled", "cancelled"),
                            ("skipped", "skipped"),
                            ("missed", "missed"),
                        ],
                        max_length=16,
                        verbose_name="outcome",
                    ),
                ),
                ("reason", models.CharField(max_length=32, verbose_name="reason")),
                ("attempt", models.PositiveIntegerField(default=0, verbose_name="attempt")),
                ("error", models.TextField(blank=True, verbose_name="error")),
                ("traceback", models.TextField(blank=True, verbose_name="traceback")),
                ("result", models.JSONField(blank=True, null=True, verbose_name="returned value")),
                ("log", models.TextField(blank=True, verbose_name="log")),
                ("output", models.TextField(blank=True, verbose_name="output")),
                ("detail", models.JSONField(blank=True, null=True, verbose_name="detail")),
                ("term", models.BigIntegerField(default=0, verbose_name="term")),
                ("epoch", models.BigIntegerField(blank=True, null=True, verbose_name="epoch")),
                (
                    "cancel_requested_at",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="cancellation requested at"
                    ),
                ),
                (
                    "running_slot",
                    django_declarative_cron.fields.NameField(
                        blank=True, max_length=300, null=True, verbose_name="slot while active"
                    ),
                ),
                (
                    "job",
                    models.JSONField(
                        blank=True, null=True, verbose_name="job for an external worker"
                    ),
                ),
                (
                    "waits_in",
                    django_declarative_cron.fields.NameField(
                        blank=True, max_length=255, null=True, verbose_name="waits in queue"
                    ),
                ),
                (
                    "worker",
                    models.CharField(blank=True, max_length=255, verbose_name="external worker"),
                ),
                (
                    "reservation",
                    models.UUIDField(
                        blank=True, editable=False, null=True, verbose_name="reservation"
                    ),
                ),
                (
                    "reserved_until",
                    django_declarative_cron.fields.InstantField(
                        blank=True, null=True, verbose_name="reserved until"
                    ),
                ),
                (
                    "instance",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="runs",
                        to="django_declarative_cron.schedulerinstance",
                        verbose_name="scheduler instance",
                    ),
                ),
                (
                    "scheduler",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="django_declarative_cron.schedulerstate",
                        verbose_name="deployment",
                    ),
                ),
            ],
            options={
                "verbose_name": "run",
                "verbose_name_plural": "runs",
                "ordering": ["-id"],
                "permissions": [
                    ("work_taskrun", "Can fetch and report runs as an external worker"),
                    ("cancel_taskrun", "Can cancel runs"),
                ],
                "default_permissions": ("view",),
            },
        ),
        migrations.AddConstraint(
            model_name="schedulerstate",
            constraint=django_declarative_cron.fields.ColumnTypes(name="ddc_state_types"),
        ),
        migrations.AddIndex(
            model_name="schedulerinstance",
            index=models.Index(
                fields=["scheduler", "stopped_at", "heartbeat_at"], name="ddc_instance_alive"
            ),
        ),
        migrations.AddConstraint(
            model_name="schedulerinstance",
            constraint=django_declarative_cron.fields.ColumnTypes(name="ddc_instance_types"),
        ),
        migrations.AddIndex(
            model_name="scheduledtask",
            index=models.Index(fields=["scheduler", "wake_at"], name="ddc_task_wake"),
        ),
        migrations.AddConstraint(
            model_name="scheduledtask",
            constraint=models.UniqueConstraint(
                fields=("scheduler", "name"), name="ddc_task_name_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="scheduledtask",
            constraint=django_declarative_cron.fields.ColumnTypes(name="ddc_task_types"),
        ),
        migrations.AddConstraint(
            model_name="registrationset",
            constraint=models.UniqueConstraint(
                fields=("scheduler", "generation"), name="ddc_registration_set_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="registrationset",
            constraint=django_declarative_cron.fields.ColumnTypes(
                name="ddc_registration_set_types"
            ),
        ),
        migrations.AddConstraint(
            model_name="registrationpart",
            constraint=models.UniqueConstraint(
                fields=("scheduler", "digest"), name="ddc_registration_part_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="registrationpart",
            constraint=django_declarative_cron.fields.ColumnTypes(
                name="ddc_registration_part_types"
            ),
        ),
        migrations.AddIndex(
            model_name="outboxevent",
            index=models.Index(fields=["scheduler", "task_name", "id"], name="ddc_outbox_order"),
        ),
        migrations.AddConstraint(
            model_name="outboxevent",
            constraint=django_declarative_cron.fields.ColumnTypes(name="ddc_outbox_types"),
        ),
        migrations.AddConstraint(
            model_name="accesstoken",
            constraint=models.UniqueConstraint(
                fields=("scheduler", "name"), name="ddc_token_name_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="accesstoken",
            constraint=django_declarative_cron.fields.ColumnTypes(name="ddc_token_types"),
        ),
        migrations.AddIndex(
            model_name="taskoverride",
            index=models.Index(
                fields=["scheduler", "task_name", "-id"], name="ddc_override_history"
            ),
        ),
        migrations.AddIndex(
            model_name="taskoverride",
            index=models.Index(fields=["scheduler", "kind", "ended_at"], name="ddc_override_open"),
        ),
        migrations.AddConstraint(
            model_name="taskoverride",
            constraint=django_declarative_cron.fields.ColumnTypes(name="ddc_override_types"),
        ),
        migrations.AddIndex(
            model_name="taskrun",
            index=models.Index(fields=["scheduler", "task_name", "-id"], name="ddc_run_history"),
        ),
        migrations.AddIndex(
            model_name="taskrun",
            index=models.Index(fields=["scheduler", "waits_in", "id"], name="ddc_run_waiting"),
        ),
        migrations.AddIndex(
            model_name="taskrun",
            index=models.Index(fields=["instance", "cancel_requested_at"], name="ddc_run_to_end"),
        ),
        migrations.AddIndex(
            model_name="taskrun",
            index=models.Index(
                fields=["scheduler", "outcome", "finished_at"], name="ddc_run_outcome"
            ),
        ),
        migrations.AddConstraint(
            model_name="taskrun",
            constraint=models.UniqueConstraint(
                fields=("scheduler", "running_slot"), name="ddc_run_one_at_a_time"
            ),
        ),
        migrations.AddConstraint(
            model_name="taskrun",
            constraint=models.UniqueConstraint(
                fields=("scheduler", "task_name", "scheduled_for", "attempt", "epoch", "reason"),
                name="ddc_run_once_per_attempt",
            ),
        ),
        migrations.AddConstraint(
            model_name="taskrun",
            constraint=django_declarative_cron.fields.ColumnTypes(name="ddc_run_types"),
        ),
    ]
