"""`django_celery_beat.tzcrontab`."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from celery.schedules import schedstate

from onebeat.models.celery_schedules import ZonedCrontab

__all__ = ["TzAwareCrontab", "schedstate"]


class TzAwareCrontab(ZonedCrontab):
    """A Celery crontab in a zone of its own, with the fields by name as well."""

    def __init__(
        self,
        minute: Any = "*",
        hour: Any = "*",
        day_of_week: Any = "*",
        day_of_month: Any = "*",
        month_of_year: Any = "*",
        tz: tzinfo | None = None,
        app: Any = None,
    ) -> None:
        super().__init__(minute, hour, day_of_week, day_of_month, month_of_year, tz=tz, app=app)
