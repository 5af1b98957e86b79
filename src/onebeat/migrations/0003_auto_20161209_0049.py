"""One solar row for each event and place."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "0002_auto_20161118_0346")]

    operations = [
        migrations.AlterModelOptions(
            name="solarschedule",
            options={
                "verbose_name": "solar event",
                "verbose_name_plural": "solar events",
                "ordering": ("event", "latitude", "longitude"),
            },
        ),
        migrations.AlterUniqueTogether(name="solarschedule", unique_together={("event", "latitude", "longitude")}),
    ]
