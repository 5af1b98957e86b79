"""Message priority. It also joins the two branches."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("django_celery_beat", "0005_add_solarschedule_events_choices"),
        ("django_celery_beat", "0006_auto_20180210_1226"),
        ("django_celery_beat", "0006_auto_20180322_0932"),
        ("django_celery_beat", "0007_auto_20180521_0826"),
        ("django_celery_beat", "0008_auto_20180914_1922"),
    ]

    operations = [
        migrations.AddField(
            model_name="periodictask",
            name="priority",
            field=models.PositiveIntegerField(blank=True, default=None, null=True),
        ),
    ]
