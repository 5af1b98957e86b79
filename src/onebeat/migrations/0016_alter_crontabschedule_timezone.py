"""Nothing in the tables changes here. The name stays because databases and other apps' migrations refer to it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "0015_edit_solarschedule_events_choices")]

    operations = []
