"""One value of each kind of schedule for each number, in several spellings. For code that runs in other processes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

KINDS = ("interval", "crontab", "solar", "clocked")
WAYS = ("get_or_create", "update_or_create", "from_schedule", "create")

_START = datetime(2030, 1, 1, tzinfo=UTC)
_INDIA = timezone(timedelta(hours=5, minutes=30))


def model(kind: str) -> Any:
    from onebeat import models

    return getattr(models, f"{kind.capitalize()}Schedule")


def value(kind: str, number: int, spelling: int = 0) -> dict[str, Any]:
    """The fields of one value (`number` below 1,440). It is the same value in every spelling."""
    minute, hour = number % 60, number // 60
    spellings: dict[str, list[dict[str, Any]]] = {
        "interval": [{"every": number + 1, "period": "seconds"}, {"every": str(number + 1), "period": " Seconds "}],
        "crontab": [
            {"minute": str(minute), "hour": str(hour), "day_of_week": "1,3,5", "timezone": "Europe/Paris"},
            {"minute": minute, "hour": [hour], "day_of_week": {5, 3, 1}, "timezone": "europe/paris"},
            {"minute": f" {minute}", "hour": hour, "day_of_week": "MON, wed,friday", "timezone": "Europe/Paris"},
        ],
        "solar": [
            {"event": "sunset", "latitude": Decimal(number) / 100, "longitude": 1},
            {"event": "Sunset", "latitude": f"{number / 100:.9f}", "longitude": Decimal("1.00000000")},
        ],
        "clocked": [
            {"clocked_time": _START + timedelta(seconds=number)},
            {"clocked_time": (_START + timedelta(seconds=number)).astimezone(_INDIA)},
        ],
    }
    return spellings[kind][spelling % len(spellings[kind])]


def in_celerys_words(kind: str, number: int) -> Any:
    """The same value as the object that `from_schedule` takes."""
    from celery import schedules

    from onebeat.dispatch.celery.schedules import TzAwareCrontab

    fields = value(kind, number)
    if kind == "interval":
        return schedules.schedule(timedelta(seconds=number + 1))
    if kind == "crontab":
        return TzAwareCrontab(fields["minute"], fields["hour"], "mon,wed,fri", tz=fields["timezone"])
    if kind == "solar":  # Celery's own needs ephem to be made
        return SimpleNamespace(event="sunset", lat=number / 100, lon=1.0)
    return fields["clocked_time"]


def obtain(kind: str, way: str, number: int, spelling: int = 0) -> tuple[Any, bool | None]:
    """The row of a value, and whether it was made, as far as that way says."""
    rows, fields = model(kind).objects, value(kind, number, spelling)
    if way == "from_schedule":
        row = model(kind).from_schedule(in_celerys_words(kind, number))
        row.save()
        return row, None
    if way == "create":
        return rows.create(**fields), None
    find: Callable[..., tuple[Any, bool]] = getattr(rows, way)
    return find(**fields)


def stored(kind: str) -> list[int]:
    """The primary keys of all rows."""
    return sorted(model(kind).objects.values_list("pk", flat=True))
