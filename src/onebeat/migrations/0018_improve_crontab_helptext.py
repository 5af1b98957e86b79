"""Nothing in the tables changes here. The name stays because databases and other apps' migrations refer to it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "0017_alter_crontabschedule_month_of_year")]

    operations = []
