"""A clocked schedule is an instant and nothing else; being enabled is the task's."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("django_celery_beat", "0013_auto_20200609_0727")]

    operations = [
        migrations.RemoveField(model_name="clockedschedule", name="enabled"),
    ]
