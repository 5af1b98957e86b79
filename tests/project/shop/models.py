from __future__ import annotations

from django.db import models


class Reminder(models.Model):
    """Refers to a task by the name third parties use, django-celery-beat's."""

    task = models.ForeignKey("django_celery_beat.PeriodicTask", on_delete=models.CASCADE, related_name="reminders")
    note = models.CharField(max_length=100, blank=True)

    def __str__(self) -> str:
        return self.note
