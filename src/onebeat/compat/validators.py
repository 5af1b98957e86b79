"""`django_celery_beat.validators`: onebeat's one grammar under the old names. Each raises `ValidationError`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.exceptions import ValidationError

from onebeat.core.recurrence import canonical_field, check_crontab
from onebeat.errors import InvalidSchedule

__all__ = [
    "crontab_validator",
    "day_of_month_validator",
    "day_of_week_validator",
    "hour_validator",
    "minute_validator",
    "month_of_year_validator",
]


def _refusing(check: Callable[..., Any], *values: Any) -> None:
    try:
        check(*values)
    except InvalidSchedule as error:
        raise ValidationError(str(error), code="invalid") from error


def crontab_validator(value: str) -> None:
    """Five fields in one text: minute, hour, day of month, month, day of week."""
    fields = str(value).split()
    if len(fields) != 5:
        raise ValidationError(f"A crontab has five fields; {value!r} has {len(fields)}.", code="invalid")
    _refusing(check_crontab, *fields)


def minute_validator(value: Any) -> None:
    """The minute."""
    _refusing(canonical_field, "minute", value)


def hour_validator(value: Any) -> None:
    """The hour."""
    _refusing(canonical_field, "hour", value)


def day_of_month_validator(value: Any) -> None:
    """The day of the month."""
    _refusing(canonical_field, "day_of_month", value)


def month_of_year_validator(value: Any) -> None:
    """The month."""
    _refusing(canonical_field, "month_of_year", value)


def day_of_week_validator(value: Any) -> None:
    """The day of the week."""
    _refusing(canonical_field, "day_of_week", value)
