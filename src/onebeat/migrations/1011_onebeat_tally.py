"""What each scheduler has sent and skipped, for monitors: counting the ledger would cost them its whole length."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "1010_onebeat_declared")]

    operations = [
        migrations.AddField("beat", "tally", models.TextField(db_default="{}", default="{}")),
    ]
