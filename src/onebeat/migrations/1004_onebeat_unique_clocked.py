"""One row for each clocked value, enforced by the database. (Solar rows have had their constraint from the start.)"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "1003_onebeat_unique_crontab")]

    operations = [
        migrations.AddConstraint(
            model_name="clockedschedule",
            constraint=models.UniqueConstraint(fields=["clocked_time"], name="onebeat_clocked_value"),
        ),
    ]
