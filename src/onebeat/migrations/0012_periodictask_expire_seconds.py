"""A message's time to live."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "0011_auto_20190508_0153")]

    operations = [
        migrations.AddField(
            model_name="periodictask",
            name="expire_seconds",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
    ]
