"""What code declares, as of the last sync, and which version of the code has its turn to say so."""

from django.db import migrations, models

import onebeat.models.instants


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "1008_onebeat_verbs")]

    operations = [
        migrations.CreateModel(
            name="Declared",
            fields=[
                ("name", models.CharField(max_length=200, primary_key=True, serialize=False)),
                ("task", models.BigIntegerField(db_index=True)),
                ("source", models.CharField(max_length=20)),
                ("place", models.CharField(blank=True, default="", max_length=500)),
                ("said", models.TextField(default="{}")),
                ("left_at", onebeat.models.instants.UTCDateTimeField(null=True)),
                ("disabled_by_us", models.BooleanField(db_default=False, default=False)),
            ],
            options={"db_table": "onebeat_declared"},
        ),
        migrations.CreateModel(
            name="CodeVersion",
            fields=[
                ("source", models.CharField(max_length=20, primary_key=True, serialize=False)),
                ("known", models.TextField(default="[]")),
                ("since", onebeat.models.instants.UTCDateTimeField()),
                ("seen_at", onebeat.models.instants.UTCDateTimeField()),
            ],
            options={"db_table": "onebeat_codeversion"},
        ),
    ]
