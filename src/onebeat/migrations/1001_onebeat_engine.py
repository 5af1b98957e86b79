"""The engine's tables and what onebeat adds for people. None of the old tables is touched.

Written by Django from the models: until the first release it is written anew instead of being added to.
"""

import uuid
from typing import Any

import django.db.models.deletion
from django.db import migrations, models

import onebeat.core.identity
from onebeat.db.storage import SetStorage
from onebeat.models.fields import ExactField
from onebeat.models.indexes import Partial
from onebeat.models.instants import UTCDateTimeField

#: Vacuum comes after so many dead rows and at the speed that its table needs. An occurrence is updated three times in a
#: row: its page has room for all four versions, so that no index learns of them even while nothing can be vacuumed.
_SMALL = {"autovacuum_vacuum_scale_factor": "0", "autovacuum_vacuum_threshold": "500"}
STORAGE = {
    "onebeat_occurrence": {
        "fillfactor": "22",
        "autovacuum_vacuum_scale_factor": "0.01",
        "autovacuum_vacuum_threshold": "10000",
        "autovacuum_vacuum_insert_scale_factor": "0.02",
        "autovacuum_analyze_scale_factor": "0.02",
        "autovacuum_vacuum_cost_limit": "2000",
    },
    "onebeat_taskstate": {
        "fillfactor": "70",
        "autovacuum_vacuum_scale_factor": "0.02",
        "autovacuum_vacuum_threshold": "1000",
        "autovacuum_vacuum_cost_limit": "2000",
    },
    "onebeat_batch": _SMALL,
    "onebeat_beat": _SMALL,
    "onebeat_change": _SMALL,
    "onebeat_lease": _SMALL,
}


def make_namespace(apps: Any, schema_editor: Any) -> None:
    """Make the random namespace of this database's task ids here, so that no lost claim can lose it."""
    facts = apps.get_model("django_celery_beat", "Fact").objects.using(schema_editor.connection.alias)
    facts.get_or_create(name="namespace", defaults={"value": str(uuid.uuid4())})


class Migration(migrations.Migration):
    dependencies = [
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [
        migrations.CreateModel(
            name="Action",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "task",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="onebeat_actions",
                        to="django_celery_beat.periodictask",
                    ),
                ),
                ("at", UTCDateTimeField()),
                ("verb", models.CharField(max_length=20)),
                ("task_name", models.CharField(blank=True, default="", max_length=200)),
                ("by", models.CharField(blank=True, default="", max_length=200)),
                ("why", models.TextField(blank=True, default="")),
                ("detail", models.TextField(blank=True, default="")),
            ],
            options={
                "verbose_name": "action",
                "verbose_name_plural": "actions",
                "db_table": "onebeat_action",
            },
        ),
        migrations.CreateModel(
            name="Beat",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("host", models.CharField(max_length=255)),
                ("pid", models.BigIntegerField()),
                ("version", models.CharField(max_length=40)),
                ("started_at", UTCDateTimeField()),
                ("seen_at", UTCDateTimeField()),
                ("able_since", UTCDateTimeField(null=True)),
                (
                    "unable_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("broker_unavailable", "its broker does not answer"),
                            ("broker_refuses", "its broker answers and accepts no message"),
                            ("standby", "another beat sends the same tasks"),
                            ("classic", "it runs in classic mode, which does not report whether it can send"),
                        ],
                        db_default="",
                        default="",
                        max_length=20,
                    ),
                ),
                ("able_until", UTCDateTimeField(null=True)),
                ("lag_ms", models.BigIntegerField(default=0)),
                ("skew_ms", models.BigIntegerField(default=0)),
                ("failed", models.BigIntegerField(db_default=0, default=0)),
                ("tally", models.TextField(db_default="{}", default="{}")),
                ("stopped_at", UTCDateTimeField(null=True)),
            ],
            options={
                "verbose_name": "scheduler",
                "verbose_name_plural": "schedulers",
                "db_table": "onebeat_beat",
            },
        ),
        migrations.CreateModel(
            name="Change",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=8)),
                ("ref", models.BigIntegerField()),
                ("at", UTCDateTimeField()),
                ("left_disabled", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "db_table": "onebeat_change",
            },
        ),
        migrations.CreateModel(
            name="CodeVersion",
            fields=[
                ("source", models.CharField(max_length=20, primary_key=True, serialize=False)),
                ("known", models.TextField(default="[]")),
                ("since", UTCDateTimeField()),
                ("seen_at", UTCDateTimeField()),
            ],
            options={
                "db_table": "onebeat_codeversion",
            },
        ),
        migrations.CreateModel(
            name="Declared",
            fields=[
                ("name", ExactField(max_length=200, primary_key=True, serialize=False)),
                ("task", models.BigIntegerField(db_index=True)),
                ("source", models.CharField(max_length=20)),
                ("place", models.CharField(blank=True, default="", max_length=500)),
                ("values", models.TextField(blank=True, default="{}")),
                ("removed_at", UTCDateTimeField(null=True)),
                ("disabled_by_sync", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "db_table": "onebeat_declared",
            },
        ),
        migrations.CreateModel(
            name="ClaimedBatch",
            fields=[
                ("token", models.BigIntegerField(primary_key=True, serialize=False)),
                ("holder", models.BigIntegerField(null=True)),
                ("lease_until", UTCDateTimeField()),
            ],
            options={
                "db_table": "onebeat_batch",
                "indexes": [models.Index(fields=["holder", "lease_until"], name="onebeat_batch_lease")],
            },
        ),
        migrations.CreateModel(
            name="Fact",
            fields=[
                ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("value", models.TextField()),
            ],
            options={
                "db_table": "onebeat_fact",
            },
        ),
        migrations.CreateModel(
            name="Lease",
            fields=[
                ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("term", models.BigIntegerField(default=0)),
                ("holder", models.BigIntegerField(null=True)),
                ("lease_until", UTCDateTimeField()),
                ("place", models.BigIntegerField(default=0)),
            ],
            options={
                "db_table": "onebeat_lease",
            },
        ),
        migrations.CreateModel(
            name="Occurrence",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "task",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="onebeat_occurrences",
                        to="django_celery_beat.periodictask",
                    ),
                ),
                ("task_uid", models.BigIntegerField(default=0)),
                ("task_name", models.CharField(max_length=200)),
                ("due_at", UTCDateTimeField()),
                ("run", models.IntegerField(default=0)),
                ("last_due_at", UTCDateTimeField(null=True)),
                ("state", models.CharField(max_length=10)),
                ("reason", models.CharField(blank=True, default="", max_length=20)),
                ("detail", models.TextField(blank=True, default="")),
                ("into_at", UTCDateTimeField(null=True)),
                ("celery_task_id", models.UUIDField()),
                ("claim_token", models.BigIntegerField(null=True)),
                ("claims", models.SmallIntegerField(default=0)),
                ("publish_failures", models.SmallIntegerField(db_default=0, default=0)),
                (
                    "beat",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="django_celery_beat.beat",
                    ),
                ),
                ("decided_at", UTCDateTimeField()),
                ("sent_at", UTCDateTimeField(null=True)),
                ("attempt", models.IntegerField(null=True)),
                ("start_token", models.BigIntegerField(null=True)),
                ("started_at", UTCDateTimeField(null=True)),
                ("finished_at", UTCDateTimeField(null=True)),
                ("worker", models.CharField(blank=True, db_default="", default="", max_length=255)),
                ("outcome", models.CharField(blank=True, db_default="", default="", max_length=12)),
                ("error", models.CharField(blank=True, db_default="", default="", max_length=500)),
                ("duplicate_deliveries", models.IntegerField(db_default=0, default=0)),
            ],
            options={
                "verbose_name": "occurrence",
                "verbose_name_plural": "occurrences",
                "db_table": "onebeat_occurrence",
            },
        ),
        migrations.CreateModel(
            name="Outage",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=10)),
                ("began_at", UTCDateTimeField()),
                ("ended_at", UTCDateTimeField()),
            ],
            options={
                "db_table": "onebeat_outage",
            },
        ),
        migrations.CreateModel(
            name="TaskOptions",
            fields=[
                (
                    "task",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="onebeat_options",
                        serialize=False,
                        to="django_celery_beat.periodictask",
                    ),
                ),
                ("missed", models.CharField(default="latest", max_length=10)),
                ("grace_seconds", models.PositiveIntegerField(blank=True, null=True)),
                ("jitter_seconds", models.PositiveIntegerField(default=0)),
                ("overlap", models.CharField(db_default="allow", default="allow", max_length=10)),
                ("overlap_limit_seconds", models.PositiveIntegerField(db_default=3600, default=3600)),
                ("paused", models.BooleanField(default=False)),
                ("paused_until", UTCDateTimeField(blank=True, null=True)),
                ("paused_why", models.TextField(blank=True, default="")),
                ("paused_by", models.CharField(blank=True, default="", max_length=200)),
                ("paused_at", UTCDateTimeField(blank=True, editable=False, null=True)),
                ("origin", models.CharField(blank=True, db_default="", default="", editable=False, max_length=10)),
                ("tags", models.CharField(blank=True, db_default="", default="", max_length=500)),
                ("extra", models.TextField(blank=True, db_default="{}", default="{}")),
                ("link", models.CharField(blank=True, db_default="", default="", editable=False, max_length=255)),
            ],
            options={
                "verbose_name": "task options",
                "verbose_name_plural": "task options",
                "db_table": "onebeat_taskoptions",
            },
        ),
        migrations.CreateModel(
            name="TaskState",
            fields=[
                (
                    "task",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="onebeat_state",
                        serialize=False,
                        to="django_celery_beat.periodictask",
                    ),
                ),
                ("uid", models.BigIntegerField(default=onebeat.core.identity.new_task_uid)),
                ("task_name", models.CharField(default="", max_length=200)),
                ("due_at", UTCDateTimeField(null=True)),
                ("wake_at", UTCDateTimeField(null=True)),
                ("anchor", UTCDateTimeField()),
                ("water_mark", UTCDateTimeField(null=True)),
                ("definition_since", UTCDateTimeField(null=True)),
                ("open_occurrence", models.BigIntegerField(null=True)),
                ("version", models.BigIntegerField(default=0)),
                ("quarantine", models.TextField(blank=True, default="")),
                ("enabled", models.BooleanField()),
                ("one_off", models.BooleanField()),
                ("interval", models.IntegerField(null=True)),
                ("crontab", models.IntegerField(null=True)),
                ("solar", models.IntegerField(null=True)),
                ("clocked", models.IntegerField(null=True)),
                ("rule", models.CharField(blank=True, default="", max_length=700)),
                ("clocked_time", models.DateTimeField(null=True)),
                ("start_time", models.DateTimeField(null=True)),
                ("expires", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "plan",
                "verbose_name_plural": "plans",
                "db_table": "onebeat_taskstate",
            },
        ),
        migrations.AddConstraint(
            model_name="outage",
            constraint=models.UniqueConstraint(fields=("began_at",), name="onebeat_outage_began"),
        ),
        migrations.AddIndex(
            model_name="taskoptions",
            index=models.Index(fields=["link"], name="onebeat_taskoptions_link"),
        ),
        migrations.AddIndex(
            model_name="taskstate",
            index=models.Index(fields=["wake_at"], name="onebeat_taskstate_wake"),
        ),
        migrations.AddIndex(
            model_name="taskstate",
            index=Partial(fields=["task"], name="onebeat_taskstate_aside", where=models.Q(("quarantine__gt", ""))),
        ),
        migrations.AddIndex(
            model_name="taskstate",
            index=Partial(
                fields=["task"], name="onebeat_taskstate_ended", where=models.Q(("due_at", None), ("enabled", True))
            ),
        ),
        migrations.AddIndex(
            model_name="action",
            index=models.Index(fields=["task", "id"], name="onebeat_action_task"),
        ),
        migrations.AddIndex(
            model_name="occurrence",
            index=models.Index(fields=["task", "due_at"], name="onebeat_occurrence_task"),
        ),
        migrations.AddIndex(
            model_name="occurrence",
            index=models.Index(fields=["claim_token"], name="onebeat_occurrence_batch"),
        ),
        migrations.AddIndex(
            model_name="occurrence",
            index=Partial(fields=["reason", "id"], name="onebeat_occurrence_why", where=models.Q(("reason__gt", ""))),
        ),
        migrations.AddIndex(
            model_name="occurrence",
            index=Partial(fields=["id"], name="onebeat_occurrence_error", where=models.Q(("error__gt", ""))),
        ),
        migrations.AddConstraint(
            model_name="occurrence",
            constraint=models.UniqueConstraint(fields=("task_uid", "due_at", "run"), name="onebeat_occurrence_once"),
        ),
        migrations.AddConstraint(
            model_name="occurrence",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["claimed", "sent", "started", "succeeded", "failed", "skipped"])),
                name="onebeat_occurrence_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="occurrence",
            constraint=models.CheckConstraint(
                condition=models.Q(("reason", ""), ("state", "skipped"), _negated=True),
                name="onebeat_occurrence_reason",
            ),
        ),
        *(SetStorage(table, parameters) for table, parameters in STORAGE.items()),
        migrations.RunPython(make_namespace, migrations.RunPython.noop, hints={"model_name": "fact"}),
    ]
