from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    # The last migration of django-celery-beat 2.9.0, as a third party would name it.
    dependencies = [("django_celery_beat", "0019_alter_periodictasks_options")]

    operations = [
        migrations.CreateModel(
            name="Reminder",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("note", models.CharField(blank=True, max_length=100)),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reminders",
                        to="django_celery_beat.periodictask",
                    ),
                ),
            ],
        ),
    ]
