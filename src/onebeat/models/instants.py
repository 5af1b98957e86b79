"""Instants in the database: one column type for the engine's tables, and the one conversion from and to people's
columns.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.dateparse import parse_datetime

from onebeat.db import database_clock, utc_columns

if TYPE_CHECKING:
    InstantField = models.Field[datetime | str | None, Any]
else:
    InstantField = models.Field


class UTCDateTimeField(InstantField):
    """An aware UTC instant with microseconds, the same in every database and under every setting.

    A `DateTimeField` will not do: with USE_TZ = False it refuses aware values and stores local time, in which two
    instants of the repeated autumn hour are one. The column holds UTC without a zone.
    """

    description = "An instant (UTC)"

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return utc_columns.column_type(connection)

    def get_internal_type(self) -> str:
        return "UTCDateTimeField"

    def to_python(self, value: object) -> datetime | None:
        if isinstance(value, str):
            value = parse_datetime(value)
        if value is None:
            return None
        if not isinstance(value, datetime) or value.tzinfo is None:
            raise ValidationError("An instant with a time zone is needed, such as 2026-03-28T09:00:00Z.")
        return value.astimezone(UTC)

    def get_prep_value(self, value: object) -> object:
        return self.to_python(super().get_prep_value(value))

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        instant = value if prepared else self.get_prep_value(value)
        return utc_columns.to_columns(connection.alias, [instant])[0]

    def from_db_value(self, value: object, expression: object, connection: object) -> datetime | None:
        return utc_columns.from_column(value)

    def value_to_string(self, obj: models.Model) -> str:
        value = self.value_from_object(obj)
        return "" if value is None else value.isoformat()

    def formfield(self, **kwargs: Any) -> Any:
        return super().formfield(**{"form_class": forms.DateTimeField, **kwargs})


class DatabaseNow(models.Func):
    """The database's present instant inside a statement: its clock when the statement runs, not when it was written."""

    output_field = UTCDateTimeField()

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **extra: Any) -> tuple[str, tuple[Any, ...]]:
        sql, params = database_clock.clock_sql(connection.alias)
        return f"({sql})", tuple(params)


def project_zone() -> tzinfo:
    """The zone that a naive time of this project means: TIME_ZONE."""
    return ZoneInfo(settings.TIME_ZONE)


def to_utc(value: datetime) -> datetime:
    """A time from one of people's columns as an instant.

    With USE_TZ = False the column holds wall-clock time of TIME_ZONE: in the repeated hour of autumn its first pass, in
    the gap of spring the first instant after it.
    """
    if value.tzinfo is not None:
        return value.astimezone(UTC)
    zone = project_zone()
    instant = value.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == value:
        return instant
    # In a gap the reading with the later offset (fold=1) lies before it and that with the earlier one after it: the
    # wall clock jumps between them. Halve until that second is found.
    low, high = value.replace(tzinfo=zone, fold=1).astimezone(UTC), instant
    offset = low.astimezone(zone).utcoffset()
    while high - low > timedelta(microseconds=1):
        middle = low + (high - low) / 2
        if middle.astimezone(zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return high


def from_utc(instant: datetime) -> datetime:
    """An instant as one of people's columns takes it: aware with USE_TZ, else wall-clock time of TIME_ZONE."""
    if settings.USE_TZ:
        return instant
    return instant.astimezone(project_zone()).replace(tzinfo=None)


def from_their_run(value: datetime) -> datetime:
    """A time of one of people's columns as django-celery-beat reads it; a naive one is UTC, as it writes
    `last_run_at`.
    """
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def to_their_run(instant: datetime) -> datetime:
    """An instant as a `last_run_at` that django-celery-beat reads."""
    return instant if settings.USE_TZ else instant.astimezone(UTC).replace(tzinfo=None)
