"""The first tables: crontabs, intervals, tasks, and the row that says when anything last changed."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="CrontabSchedule",
            fields=[
                (
                    "id",
                    models.AutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("minute", models.CharField(default="*", max_length=64)),
                ("hour", models.CharField(default="*", max_length=64)),
                ("day_of_week", models.CharField(default="*", max_length=64)),
                ("day_of_month", models.CharField(default="*", max_length=64)),
                ("month_of_year", models.CharField(default="*", max_length=64)),
            ],
            options={
                "verbose_name": "crontab",
                "verbose_name_plural": "crontabs",
                "ordering": ["month_of_year", "day_of_month", "day_of_week", "hour", "minute"],
            },
        ),
        migrations.CreateModel(
            name="IntervalSchedule",
            fields=[
                (
                    "id",
                    models.AutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("every", models.IntegerField()),
                ("period", models.CharField(max_length=24)),
            ],
            options={
                "verbose_name": "interval",
                "verbose_name_plural": "intervals",
                "ordering": ["period", "every"],
            },
        ),
        migrations.CreateModel(
            name="PeriodicTask",
            fields=[
                (
                    "id",
                    models.AutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("name", models.CharField(max_length=200, unique=True)),
                ("task", models.CharField(max_length=200)),
                ("args", models.TextField(blank=True, default="[]")),
                ("kwargs", models.TextField(blank=True, default="{}")),
                ("queue", models.CharField(blank=True, default=None, max_length=200, null=True)),
                ("exchange", models.CharField(blank=True, default=None, max_length=200, null=True)),
                ("routing_key", models.CharField(blank=True, default=None, max_length=200, null=True)),
                ("expires", models.DateTimeField(blank=True, null=True)),
                ("enabled", models.BooleanField(default=True)),
                ("last_run_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("total_run_count", models.PositiveIntegerField(default=0, editable=False)),
                ("date_changed", models.DateTimeField(auto_now=True)),
                ("description", models.TextField(blank=True)),
                (
                    "crontab",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        to="django_celery_beat.crontabschedule",
                    ),
                ),
                (
                    "interval",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        to="django_celery_beat.intervalschedule",
                    ),
                ),
            ],
            options={
                "verbose_name": "periodic task",
                "verbose_name_plural": "periodic tasks",
            },
        ),
        migrations.CreateModel(
            name="PeriodicTasks",
            fields=[
                (
                    "ident",
                    models.SmallIntegerField(default=1, primary_key=True, serialize=False, unique=True),
                ),
                ("last_update", models.DateTimeField()),
            ],
        ),
    ]
