"""The Django admin: tasks and schedules to edit, the engine's tables to read. No rule of its own."""

from onebeat.admin.engine import BeatAdmin, TaskStateAdmin
from onebeat.admin.forms import PeriodicTaskForm
from onebeat.admin.occurrences import OccurrenceAdmin
from onebeat.admin.schedules import (
    ClockedScheduleAdmin,
    CrontabScheduleAdmin,
    IntervalScheduleAdmin,
    SolarScheduleAdmin,
)
from onebeat.admin.tasks import PeriodicTaskAdmin, TaskOptionsInline

__all__ = [
    "BeatAdmin",
    "ClockedScheduleAdmin",
    "CrontabScheduleAdmin",
    "IntervalScheduleAdmin",
    "OccurrenceAdmin",
    "PeriodicTaskAdmin",
    "PeriodicTaskForm",
    "SolarScheduleAdmin",
    "TaskOptionsInline",
    "TaskStateAdmin",
]
