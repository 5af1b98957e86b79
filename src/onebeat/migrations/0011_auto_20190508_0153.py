"""Clocked schedules, and tasks that run on them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "0010_auto_20190429_0326")]

    operations = [
        migrations.CreateModel(
            name="ClockedSchedule",
            fields=[
                (
                    "id",
                    models.AutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("clocked_time", models.DateTimeField()),
                ("enabled", models.BooleanField(default=True, editable=False)),
            ],
            options={
                "verbose_name": "clocked",
                "verbose_name_plural": "clocked",
                "ordering": ["clocked_time"],
            },
        ),
        migrations.AddField(
            model_name="periodictask",
            name="clocked",
            field=models.ForeignKey(
                blank=True, null=True, on_delete=models.CASCADE, to="django_celery_beat.clockedschedule"
            ),
        ),
    ]
