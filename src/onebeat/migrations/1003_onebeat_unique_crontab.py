"""One row for each crontab value, enforced by the database; duplicates are merged first, the oldest row stays."""

from django.db import migrations, models

from onebeat.takeover.arrive.operations import MergeAndConstrain


class Migration(migrations.Migration):
    # It runs beside writers, in many transactions, and can be stopped and run again at any point.
    atomic = False

    dependencies = [("django_celery_beat", "1002_onebeat_unique_interval")]

    operations = [
        MergeAndConstrain(
            model_name="crontabschedule",
            constraint=models.UniqueConstraint(
                fields=["minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone"],
                name="onebeat_crontab_value",
            ),
        ),
    ]
