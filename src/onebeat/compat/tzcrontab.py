"""`django_celery_beat.tzcrontab`."""

from celery.schedules import schedstate

from onebeat.models.celery_schedules import TzAwareCrontab

__all__ = ["TzAwareCrontab", "schedstate"]
