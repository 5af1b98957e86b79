"""Solar schedules, and tasks that run on them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="SolarSchedule",
            fields=[
                (
                    "id",
                    models.AutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("event", models.CharField(max_length=24)),
                ("latitude", models.DecimalField(decimal_places=6, max_digits=9)),
                ("longitude", models.DecimalField(decimal_places=6, max_digits=9)),
            ],
            options={
                "verbose_name": "solar event",
                "verbose_name_plural": "solar events",
                "ordering": ["event", "latitude", "longitude"],
            },
        ),
        migrations.AddField(
            model_name="periodictask",
            name="solar",
            field=models.ForeignKey(
                blank=True, null=True, on_delete=models.CASCADE, to="django_celery_beat.solarschedule"
            ),
        ),
    ]
