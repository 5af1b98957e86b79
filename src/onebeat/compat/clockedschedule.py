"""`django_celery_beat.clockedschedule`."""

from onebeat.dispatch.celery.schedules import NEVER_CHECK_TIMEOUT, clocked

__all__ = ["NEVER_CHECK_TIMEOUT", "clocked"]
