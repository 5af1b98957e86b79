"""The engine's tables and what onebeat adds for people. None of the old tables is touched."""

import django.db.models.deletion
from django.db import migrations, models

import onebeat.models.instants


class Migration(migrations.Migration):
    dependencies = [
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [
        migrations.CreateModel(
            name="Beat",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("host", models.CharField(max_length=255)),
                ("pid", models.BigIntegerField()),
                ("version", models.CharField(max_length=40)),
                ("started_at", onebeat.models.instants.UTCDateTimeField()),
                ("seen_at", onebeat.models.instants.UTCDateTimeField()),
                ("able_since", onebeat.models.instants.UTCDateTimeField(null=True)),
                ("lag_ms", models.BigIntegerField(default=0)),
                ("skew_ms", models.BigIntegerField(default=0)),
                ("stopped_at", onebeat.models.instants.UTCDateTimeField(null=True)),
            ],
            options={
                "db_table": "onebeat_beat",
            },
        ),
        migrations.CreateModel(
            name="Change",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=8)),
                ("ref", models.BigIntegerField()),
                ("at", onebeat.models.instants.UTCDateTimeField()),
            ],
            options={
                "db_table": "onebeat_change",
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
                ("task_name", models.CharField(max_length=200)),
                ("due_at", onebeat.models.instants.UTCDateTimeField()),
                ("run", models.IntegerField(default=0)),
                ("through", onebeat.models.instants.UTCDateTimeField(null=True)),
                ("state", models.CharField(max_length=10)),
                ("reason", models.CharField(blank=True, default="", max_length=20)),
                ("detail", models.TextField(blank=True, default="")),
                ("celery_task_id", models.UUIDField()),
                ("claim", models.BigIntegerField(null=True)),
                ("lease_until", onebeat.models.instants.UTCDateTimeField(null=True)),
                ("claims", models.SmallIntegerField(default=0)),
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
                ("decided_at", onebeat.models.instants.UTCDateTimeField()),
                ("sent_at", onebeat.models.instants.UTCDateTimeField(null=True)),
            ],
            options={
                "db_table": "onebeat_occurrence",
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
                ("paused", models.BooleanField(default=False)),
                ("paused_until", onebeat.models.instants.UTCDateTimeField(blank=True, null=True)),
                ("paused_why", models.TextField(blank=True, default="")),
                ("paused_by", models.CharField(blank=True, default="", max_length=200)),
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
                ("due_at", onebeat.models.instants.UTCDateTimeField(null=True)),
                ("wake_at", onebeat.models.instants.UTCDateTimeField(null=True)),
                ("anchor", onebeat.models.instants.UTCDateTimeField()),
                ("water_mark", onebeat.models.instants.UTCDateTimeField(null=True)),
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
                "db_table": "onebeat_taskstate",
            },
        ),
        migrations.AddIndex(
            model_name="taskstate",
            index=models.Index(fields=["wake_at"], name="onebeat_taskstate_wake"),
        ),
        migrations.AddIndex(
            model_name="occurrence",
            index=models.Index(fields=["lease_until"], name="onebeat_occurrence_lease"),
        ),
        migrations.AddConstraint(
            model_name="occurrence",
            constraint=models.UniqueConstraint(fields=("task", "due_at", "run"), name="onebeat_occurrence_once"),
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
    ]
