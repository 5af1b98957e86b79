"""`django_celery_beat.querysets`."""

from onebeat.models.querysets import PeriodicTaskQuerySet

__all__ = ["PeriodicTaskQuerySet"]
