"""Crontabs get a zone of their own, and room for every minute, hour and day written out."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "0005_add_solarschedule_events_choices")]

    operations = [
        migrations.AlterModelOptions(
            name="crontabschedule",
            options={
                "verbose_name": "crontab",
                "verbose_name_plural": "crontabs",
                "ordering": ["month_of_year", "day_of_month", "day_of_week", "hour", "minute", "timezone"],
            },
        ),
        migrations.AddField(
            model_name="crontabschedule",
            name="timezone",
            field=models.CharField(default="UTC", max_length=63),
        ),
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
