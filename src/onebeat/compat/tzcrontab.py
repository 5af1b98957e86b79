"""`django_celery_beat.tzcrontab`."""

from celery.schedules import schedstate

from onebeat.dispatch.celery.schedules import TzAwareCrontab

__all__ = ["TzAwareCrontab", "schedstate"]
