"""A crontab's zone comes from the settings when none is given. The column itself stays as it is."""

from django.db import migrations, models

from onebeat.models.fields import default_zone


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "0012_periodictask_expire_seconds")]

    operations = [
        migrations.AlterField(
            model_name="crontabschedule",
            name="timezone",
            field=models.CharField(default=default_zone, max_length=63),
        ),
    ]
