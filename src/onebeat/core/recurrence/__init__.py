"""When is the next run? Recurrence rules as pure objects with one question, `after(instant)`."""

from __future__ import annotations

from onebeat.core.recurrence.base import Recurrence
from onebeat.core.recurrence.clocked import Clocked
from onebeat.core.recurrence.cron import Cron
from onebeat.core.recurrence.fields import canonical_field
from onebeat.core.recurrence.interval import UNITS, Interval
from onebeat.core.recurrence.solar import EVENTS, Solar
from onebeat.core.recurrence.values import EPOCH, rule_of
from onebeat.core.recurrence.wall import check_crontab
from onebeat.core.recurrence.zones import tzdata_version, zone
from onebeat.errors import InvalidSchedule, SolarUnavailable

__all__ = [
    "EPOCH",
    "EVENTS",
    "UNITS",
    "Clocked",
    "Cron",
    "Interval",
    "InvalidSchedule",
    "Recurrence",
    "Solar",
    "SolarUnavailable",
    "canonical_field",
    "check_crontab",
    "rule_of",
    "tzdata_version",
    "zone",
]
