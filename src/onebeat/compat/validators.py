"""`django_celery_beat.validators`: onebeat's one grammar under the old names. Each raises `ValidationError`."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.core.exceptions import ValidationError

from onebeat.core.recurrence import canonical_field, check_crontab
from onebeat.core.recurrence.fields import KINDS
from onebeat.errors import InvalidSchedule

try:  # django-celery-beat needs it, and people catch what it raises
    from cron_descriptor import (  # type: ignore[import-not-found,unused-ignore]
        FormatException,
        MissingFieldException,
        WrongArgumentException,
    )
except ImportError:

    class FormatException(Exception):  # type: ignore[no-redef]
        """cron-descriptor's; nothing here raises it."""

    class MissingFieldException(Exception):  # type: ignore[no-redef]
        """cron-descriptor's; nothing here raises it."""

    class WrongArgumentException(Exception):  # type: ignore[no-redef]
        """cron-descriptor's; nothing here raises it."""


__all__ = [
    "FormatException",
    "MissingFieldException",
    "WrongArgumentException",
    "crontab_validator",
    "day_of_month_validator",
    "day_of_week_validator",
    "hour_validator",
    "minute_validator",
    "month_of_year_validator",
]


def crontab_validator(value: str) -> None:
    """Five fields in one text: minute, hour, day of month, month, day of week."""
    fields = str(value).split()
    if len(fields) != 5:
        raise ValidationError(f"A crontab has five fields; {value!r} has {len(fields)}.", code="invalid")
    try:
        check_crontab(*fields)
    except InvalidSchedule as error:
        raise ValidationError(str(error), code="invalid") from error


def _for_field(name: str) -> Callable[[object], None]:
    largest = 7 if name == "day_of_week" else KINDS[name].high

    def validator(value: object) -> None:
        text = str(value)
        try:
            canonical_field(name, value)
            # Three things that crontabs may have and django-celery-beat's forms have never taken.
            if " " in text:
                raise InvalidSchedule(name, value, "it has a space in it")
            if any(int(first) > int(last) for first, last in re.findall(r"(\d+)-(\d+)", text)):
                raise InvalidSchedule(name, value, "it has a range that passes the end of the field")
            if any(int(step) > largest for step in re.findall(r"/(\d+)", text)):
                raise InvalidSchedule(name, value, f"a step larger than {largest} leaves one value of its range")
        except InvalidSchedule as error:
            raise ValidationError(str(error), code="invalid") from error

    validator.__name__ = validator.__qualname__ = f"{name}_validator"
    validator.__doc__ = f"What may stand in the field `{name}` of a crontab."
    return validator


minute_validator = _for_field("minute")
hour_validator = _for_field("hour")
day_of_month_validator = _for_field("day_of_month")
month_of_year_validator = _for_field("month_of_year")
day_of_week_validator = _for_field("day_of_week")
