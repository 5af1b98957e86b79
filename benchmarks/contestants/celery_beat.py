"""django-celery-beat, as `celery beat` builds it."""

from __future__ import annotations

from typing import Any

from django_celery_beat.models import ClockedSchedule, PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler


class Scheduler:
    """One scheduler; `start` is what a process does after its imports."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def start(self) -> None:
        self.scheduler = DatabaseScheduler(app=self.app, lazy=True)
        self.scheduler.setup_schedule()
        _ = self.scheduler.schedule

    def tick(self) -> float:
        """One step; seconds to wait before the next."""
        return float(self.scheduler.tick() or 0.0)

    def close(self) -> None:
        self.scheduler.close()


__all__ = ["ClockedSchedule", "PeriodicTask", "Scheduler"]
