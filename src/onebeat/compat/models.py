"""`django_celery_beat.models`."""

from __future__ import annotations

from onebeat.compat import querysets, validators
from onebeat.compat.tzcrontab import TzAwareCrontab
from onebeat.compat.utils import make_aware, now
from onebeat.compat.validators import FormatException, MissingFieldException, WrongArgumentException
from onebeat.dispatch.celery.schedules import clocked
from onebeat.models import (
    DAYS,
    HOURS,
    MICROSECONDS,
    MINUTES,
    PERIOD_CHOICES,
    SECONDS,
    SINGULAR_PERIODS,
    SOLAR_SCHEDULES,
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    PeriodicTasks,
    SolarSchedule,
)
from onebeat.models.fields import default_zone

__all__ = [
    "DAYS",
    "HOURS",
    "MICROSECONDS",
    "MINUTES",
    "PERIOD_CHOICES",
    "SECONDS",
    "SINGULAR_PERIODS",
    "SOLAR_SCHEDULES",
    "ClockedSchedule",
    "CrontabSchedule",
    "FormatException",
    "IntervalSchedule",
    "MissingFieldException",
    "PeriodicTask",
    "PeriodicTasks",
    "SolarSchedule",
    "TzAwareCrontab",
    "WrongArgumentException",
    "clocked",
    "cronexp",
    "crontab_schedule_celery_timezone",
    "make_aware",
    "now",
    "querysets",
    "validators",
]


def cronexp(field: object) -> str:
    """A crontab field as text without spaces; nothing is `*`."""
    return "".join(str(field).split()) if field or field == 0 else "*"


def crontab_schedule_celery_timezone() -> str:
    """The name of the zone of a crontab that names none. Migrations of other apps refer to it."""
    return default_zone()
