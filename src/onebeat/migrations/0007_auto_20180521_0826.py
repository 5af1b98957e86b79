"""One-off tasks, and tasks that start later."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "0006_auto_20180322_0932")]

    operations = [
        migrations.AddField(model_name="periodictask", name="one_off", field=models.BooleanField(default=False)),
        migrations.AddField(
            model_name="periodictask", name="start_time", field=models.DateTimeField(blank=True, null=True)
        ),
    ]
