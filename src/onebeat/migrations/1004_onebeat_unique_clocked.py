"""One row for each clocked value, enforced by the database; duplicates are merged first, the oldest row stays."""

from django.db import migrations, models

from onebeat.takeover.arrive.operations import MergeAndConstrain


class Migration(migrations.Migration):
    # It runs beside writers, in many transactions, and can be stopped and run again at any point.
    atomic = False

    dependencies = [("django_celery_beat", "1003_onebeat_unique_crontab")]

    operations = [
        MergeAndConstrain(
            model_name="clockedschedule",
            constraint=models.UniqueConstraint(
                fields=["clocked_time"],
                name="onebeat_clocked_value",
            ),
        ),
    ]
