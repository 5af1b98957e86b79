"""Nothing in the tables changes here. The name stays because databases and other apps' migrations refer to it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "0004_auto_20170221_0000")]

    operations = []
