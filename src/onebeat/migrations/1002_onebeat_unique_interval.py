"""One row for each interval value, enforced by the database; duplicates are merged first, the oldest row stays."""

from django.db import migrations, models

from onebeat.takeover.arrive.operations import MergeAndConstrain


class Migration(migrations.Migration):
    # It runs beside writers, in many transactions, and can be stopped and run again at any point.
    atomic = False

    dependencies = [("django_celery_beat", "1001_onebeat_engine")]

    operations = [
        MergeAndConstrain(
            model_name="intervalschedule",
            constraint=models.UniqueConstraint(
                fields=["every", "period"],
                name="onebeat_interval_value",
            ),
        ),
    ]
