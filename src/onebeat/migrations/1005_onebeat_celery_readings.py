"""Crontab rows that were taken over keep the meaning that Celery gave them; what it could not read arrives disabled."""

from django.db import migrations, models

from onebeat.takeover.arrive.operations import keep_readings


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "1004_onebeat_unique_clocked")]

    operations = [
        migrations.CreateModel(
            name="CeleryReading",
            fields=[
                ("crontab", models.BigIntegerField(primary_key=True, serialize=False)),
                ("text", models.CharField(max_length=700)),
                ("meaning", models.TextField(blank=True, default="")),
                ("why", models.TextField()),
            ],
            options={
                "verbose_name": "crontab that was taken over",
                "verbose_name_plural": "crontabs that were taken over",
                "db_table": "onebeat_celeryreading",
            },
        ),
        # What is dropped on the way back is found again on the way forward.
        migrations.RunPython(keep_readings, migrations.RunPython.noop, elidable=False),
    ]
