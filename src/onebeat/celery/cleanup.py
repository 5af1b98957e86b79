"""Celery's own clean-up of results, as a task in the table."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from celery import Celery, schedules
from celery.backends.base import DisabledBackend

from onebeat.models import CrontabSchedule, PeriodicTask

#: The name of the task, and of the Celery task that it sends.
CLEANUP = "celery.backend_cleanup"
#: A clean-up that no worker came to takes place the next day.
_EXPIRES = timedelta(hours=12)


def cleanup() -> dict[str, Any]:
    """The entry as CELERY_BEAT_SCHEDULE would have it: each day at four."""
    return {
        "task": CLEANUP,
        "schedule": schedules.crontab(minute="0", hour="4"),
        "options": {"expire_seconds": int(_EXPIRES.total_seconds())},
    }


def ensure(app: Celery) -> None:
    """Make the task where results are kept that nothing else clears away. One that is there stays as it is."""
    if not app.conf.result_expires or PeriodicTask.objects.filter(name=CLEANUP).exists():
        return
    backend: Any = app.backend
    if isinstance(backend, DisabledBackend) or backend.supports_autoexpire:
        return
    PeriodicTask.objects.get_or_create(
        name=CLEANUP,
        defaults={
            "task": CLEANUP,
            "crontab": CrontabSchedule.from_schedule(cleanup()["schedule"]),
            "expire_seconds": int(_EXPIRES.total_seconds()),
        },
    )
