"""The tables: what people edit (schedules, tasks, options) and what the engine writes."""

from onebeat.models.celery_readings import CeleryReading
from onebeat.models.declarations import CodeVersion, Declared
from onebeat.models.engine import (
    Action,
    Beat,
    Change,
    ClaimedBatch,
    Fact,
    Lease,
    Occurrence,
    Outage,
    TaskState,
)
from onebeat.models.options import TaskOptions
from onebeat.models.schedules import (
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
    SolarSchedule,
)
from onebeat.models.tasks import PeriodicTask, PeriodicTasks

__all__ = [
    "DAYS",
    "HOURS",
    "MICROSECONDS",
    "MINUTES",
    "PERIOD_CHOICES",
    "SECONDS",
    "SINGULAR_PERIODS",
    "SOLAR_SCHEDULES",
    "Action",
    "Beat",
    "CeleryReading",
    "Change",
    "ClaimedBatch",
    "ClockedSchedule",
    "CodeVersion",
    "CrontabSchedule",
    "Declared",
    "Fact",
    "IntervalSchedule",
    "Lease",
    "Occurrence",
    "Outage",
    "PeriodicTask",
    "PeriodicTasks",
    "SolarSchedule",
    "TaskOptions",
    "TaskState",
]
