"""Room for every minute, hour and day written out.

The other branch says the same; whichever comes second changes nothing.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "0005_add_solarschedule_events_choices")]

    operations = [
        migrations.AlterField(
            model_name="crontabschedule",
            name="day_of_month",
            field=models.CharField(default="*", max_length=124),
        ),
        migrations.AlterField(
            model_name="crontabschedule", name="hour", field=models.CharField(default="*", max_length=96)
        ),
        migrations.AlterField(
            model_name="crontabschedule", name="minute", field=models.CharField(default="*", max_length=240)
        ),
    ]
