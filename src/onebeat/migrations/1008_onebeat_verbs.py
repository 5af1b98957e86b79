"""What the verbs keep: who made a task and what it belongs to, its tags and extra options, and who did what to it."""

import django.db.models.deletion
from django.db import migrations, models

import onebeat.models.instants


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "1007_onebeat_outcomes")]

    operations = [
        migrations.AddField(
            "taskoptions", "paused_at", onebeat.models.instants.UTCDateTimeField(blank=True, editable=False, null=True)
        ),
        migrations.AddField(
            "taskoptions",
            "origin",
            models.CharField(blank=True, db_default="", default="", editable=False, max_length=10),
        ),
        migrations.AddField(
            "taskoptions", "tags", models.CharField(blank=True, db_default="", default="", max_length=500)
        ),
        migrations.AddField("taskoptions", "extra", models.TextField(blank=True, db_default="{}", default="{}")),
        migrations.AddField(
            "taskoptions",
            "link",
            models.CharField(blank=True, db_default="", default="", editable=False, max_length=255),
        ),
        migrations.AddIndex("taskoptions", models.Index(fields=["link"], name="onebeat_taskoptions_link")),
        migrations.CreateModel(
            name="Action",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", onebeat.models.instants.UTCDateTimeField()),
                ("verb", models.CharField(max_length=20)),
                ("task_name", models.CharField(blank=True, default="", max_length=200)),
                ("by", models.CharField(blank=True, default="", max_length=200)),
                ("why", models.TextField(blank=True, default="")),
                ("detail", models.TextField(blank=True, default="")),
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
            ],
            options={"db_table": "onebeat_action"},
        ),
        migrations.AddIndex("action", models.Index(fields=["task", "id"], name="onebeat_action_task")),
    ]
