from __future__ import annotations

from django.db import models

import onebeat


class Reminder(models.Model):
    """Refers to a task by the name third parties use, django-celery-beat's."""

    task = models.ForeignKey("django_celery_beat.PeriodicTask", on_delete=models.CASCADE, related_name="reminders")
    note = models.CharField(max_length=100, blank=True)

    def __str__(self) -> str:
        return self.note


@onebeat.linked
class Order(models.Model):
    """What reminders belong to, and go with."""


@onebeat.linked
class OrderLine(models.Model):
    """Goes with its order."""

    order = models.ForeignKey(Order, on_delete=models.CASCADE)
