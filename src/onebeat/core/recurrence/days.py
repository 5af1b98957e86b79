"""On which days of a year a rule falls: worked out once, for the fourteen kinds of year there are.

A year is one of fourteen kinds: it starts on one of seven weekdays, and it is a leap year or not. Celery's
rule holds: the day of the month and the day of the week must both match.
"""

from __future__ import annotations

from calendar import isleap
from datetime import date
from functools import lru_cache

from onebeat.core.recurrence.fields import LAST, Field
from onebeat.errors import InvalidSchedule

#: For each day-of-month, month and weekday rule: per kind of year, the mask of days (bit 1 to 31) of each
#: month (index 1 to 12), or None when the rule falls on no day of such a year.
Table = tuple[tuple[int, ...] | None, ...]

_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

#: The Gregorian calendar repeats after 400 years, weekdays included. Weekdays count from Sunday = 0.
KIND_OF_YEAR = bytes(
    date(2000 + year, 1, 1).isoweekday() % 7 + 7 * isleap(2000 + year) for year in range(400)
)  # fmt: skip


@lru_cache(maxsize=1024)
def table(day_of_month: Field, month_of_year: Field, day_of_week: Field) -> Table:
    """The days of the rule. Raises InvalidSchedule naming the field at fault when there are none in any year."""
    years = tuple(_year(kind, day_of_month, month_of_year, day_of_week) for kind in range(14))
    if not any(years):
        raise _impossible(day_of_month, month_of_year, day_of_week)
    return years


def _year(kind: int, day_of_month: Field, month_of_year: Field, day_of_week: Field) -> tuple[int, ...] | None:
    first, leap = kind % 7, kind >= 7
    months = [0]
    for month in range(1, 13):
        length = _LENGTHS[month] + (leap and month == 2)
        days = 0
        if month_of_year.mask >> month & 1:
            days = _days(day_of_month, length) & _weekdays(day_of_week, first, length)
        months.append(days)
        first = (first + length) % 7
    return tuple(months) if any(months) else None


def _days(field: Field, length: int) -> int:
    days = field.mask & ((2 << length) - 2)
    return days | 1 << length if field.last else days


@lru_cache(maxsize=4096)
def _weekdays(field: Field, first: int, length: int) -> int:
    """The days of a month that starts on weekday `first` and lasts `length` days."""
    days = 0
    for day in range(1, length + 1):
        weekday = (first + day - 1) % 7
        nth = (day + 6) // 7
        last = day + 7 > length
        if field.mask >> weekday & 1 or (weekday, nth) in field.nth or (last and (weekday, LAST) in field.nth):
            days |= 1 << day
    return days


def _impossible(day_of_month: Field, month_of_year: Field, day_of_week: Field) -> InvalidSchedule:
    months = [month for month in range(1, 13) if month_of_year.mask >> month & 1]
    if not any(_days(day_of_month, _LENGTHS[month] + (month == 2)) for month in months):
        why = f"no such day in month {month_of_year.text}, so it would never run"
        return InvalidSchedule("day_of_month", day_of_month.text, why)
    why = f"never falls on day {day_of_month.text} of month {month_of_year.text}, and both must match"
    return InvalidSchedule("day_of_week", day_of_week.text, why)
