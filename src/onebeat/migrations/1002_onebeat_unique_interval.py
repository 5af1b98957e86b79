"""One row for each interval value, enforced by the database. (Solar rows have had their constraint from the start.)"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "1001_onebeat_engine")]

    operations = [
        migrations.AddConstraint(
            model_name="intervalschedule",
            constraint=models.UniqueConstraint(fields=["every", "period"], name="onebeat_interval_value"),
        ),
    ]
