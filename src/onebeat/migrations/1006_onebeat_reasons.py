"""What the engine needs to say why: outages, since when a definition holds, overlap, leases of the housekeeping.

Each new column may be left out by an older version that runs beside a newer one (docs/adr/0020).
"""

from django.db import migrations, models

from onebeat.models.instants import UTCDateTimeField


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "1005_onebeat_taken_over")]

    operations = [
        migrations.AddField(
            "taskoptions", "overlap", models.CharField(max_length=10, default="allow", db_default="allow")
        ),
        migrations.AddField(
            "taskoptions", "overlap_limit_seconds", models.PositiveIntegerField(default=3600, db_default=3600)
        ),
        migrations.AddField("taskstate", "since", UTCDateTimeField(null=True)),
        migrations.AddField("taskstate", "running", models.BigIntegerField(null=True)),
        migrations.AddField("occurrence", "into_at", UTCDateTimeField(null=True)),
        migrations.AddField("change", "off", models.BooleanField(default=False, db_default=False)),
        migrations.AddField("beat", "able_until", UTCDateTimeField(null=True)),
        migrations.AddField("beat", "failed", models.BigIntegerField(default=0, db_default=0)),
        migrations.CreateModel(
            name="Outage",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=10)),
                ("began_at", UTCDateTimeField()),
                ("ended_at", UTCDateTimeField()),
            ],
            options={"db_table": "onebeat_outage"},
        ),
        migrations.AddConstraint(
            model_name="outage",
            constraint=models.UniqueConstraint(fields=["began_at"], name="onebeat_outage_began"),
        ),
        migrations.CreateModel(
            name="Lease",
            fields=[
                ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("term", models.BigIntegerField(default=0)),
                ("holder", models.BigIntegerField(null=True)),
                ("lease_until", UTCDateTimeField()),
                ("place", models.BigIntegerField(default=0)),
            ],
            options={"db_table": "onebeat_lease"},
        ),
    ]
