"""`django_celery_beat.clockedschedule`."""

from onebeat.models.celery_schedules import clocked

__all__ = ["clocked"]
