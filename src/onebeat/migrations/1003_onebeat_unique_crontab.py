"""One row for each crontab value, enforced by the database. (Solar rows have had their constraint from the start.)"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "1002_onebeat_unique_interval")]

    operations = [
        migrations.AddConstraint(
            model_name="crontabschedule",
            constraint=models.UniqueConstraint(
                fields=["minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone"],
                name="onebeat_crontab_value",
            ),
        ),
    ]
