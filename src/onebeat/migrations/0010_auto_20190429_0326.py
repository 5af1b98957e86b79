"""Nothing in the tables changes here. The name stays because databases and other apps' migrations refer to it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "0009_periodictask_headers")]

    operations = []
