"""What workers tell of an occurrence. Every column may be left out by an older version that runs beside this one."""

from django.db import migrations, models

from onebeat.models.instants import UTCDateTimeField


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "1006_onebeat_reasons")]

    operations = [
        migrations.AddField("occurrence", "attempt", models.IntegerField(null=True)),
        migrations.AddField("occurrence", "start", models.BigIntegerField(null=True)),
        migrations.AddField("occurrence", "started_at", UTCDateTimeField(null=True)),
        migrations.AddField("occurrence", "finished_at", UTCDateTimeField(null=True)),
        migrations.AddField(
            "occurrence", "worker", models.CharField(max_length=255, default="", db_default="", blank=True)
        ),
        migrations.AddField(
            "occurrence", "outcome", models.CharField(max_length=12, default="", db_default="", blank=True)
        ),
        migrations.AddField(
            "occurrence", "error", models.CharField(max_length=500, default="", db_default="", blank=True)
        ),
        migrations.AddField("occurrence", "copies", models.IntegerField(default=0, db_default=0)),
    ]
