"""Message headers."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "0006_periodictask_priority")]

    operations = [
        migrations.AddField(
            model_name="periodictask", name="headers", field=models.TextField(blank=True, default="{}")
        ),
    ]
