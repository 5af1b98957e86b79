"""`django_celery_beat.querysets`."""

from onebeat.models.tasks import PeriodicTaskQuerySet

__all__ = ["PeriodicTaskQuerySet"]
