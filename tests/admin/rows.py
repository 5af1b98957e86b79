"""Rows for the admin's tests to show."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from django.urls import reverse

from onebeat.models import Beat, ClockedSchedule, CrontabSchedule, IntervalSchedule, Occurrence, PeriodicTask
from onebeat.store import plans

AT = datetime(2026, 3, 28, 9, tzinfo=UTC)


def page(name: str, *args: Any) -> str:
    return reverse(f"admin:django_celery_beat_{name}", args=args)


def every(seconds: int = 30) -> IntervalSchedule:
    return IntervalSchedule.objects.get_or_create(every=seconds, period="seconds")[0]


def fill(count: int) -> None:
    """So many tasks of each kind, planned, with a row of the ledger each."""
    start = PeriodicTask.objects.count()
    for number in range(start, start + count):
        at = AT + timedelta(days=36500, minutes=number)
        kinds: list[dict[str, Any]] = [
            {"interval": every(number + 1)},
            {
                "crontab": CrontabSchedule.objects.get_or_create(
                    minute=str(number % 60), hour=str(number // 60), day_of_month="L"
                )[0]
            },
            {"clocked": ClockedSchedule.objects.get_or_create(clocked_time=at)[0], "one_off": True},
        ]
        for kind in kinds:
            task = PeriodicTask.objects.create(name=f"{number} {next(iter(kind))}", task="shop.report", **kind)
            Occurrence.objects.create(
                task=task,
                task_uid=task.pk,
                task_name=task.name,
                due_at=AT,
                state="sent",
                celery_task_id=uuid.uuid4(),
                decided_at=AT,
                sent_at=AT,
            )
        Beat.objects.create(host="here", pid=number, version="1", started_at=AT, seen_at=AT)
    while plans.consume("default", 500):
        pass
