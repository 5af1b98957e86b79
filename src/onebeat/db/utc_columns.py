"""Instants and UUIDs as parameters for UTC columns, and back, whatever USE_TZ and the session's time zone say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

Row = Sequence[Any]


_TYPES = {"postgresql": "timestamp", "mysql": "datetime(6)", "sqlite": "datetime"}


def column_type(connection: BaseDatabaseWrapper) -> str:
    """The type of a column that holds UTC without a zone."""
    return _TYPES[connection.vendor]


def to_column(vendor: str, instant: datetime | None) -> object:
    """An aware instant as the parameter that a UTC column takes."""
    if instant is None:
        return None
    if instant.tzinfo is None:
        raise ValueError(f"an instant needs a time zone: {instant!r}")
    naive = (instant if instant.tzinfo is UTC else instant.astimezone(UTC)).replace(tzinfo=None)
    return naive if vendor == "postgresql" else naive.isoformat(sep=" ", timespec="microseconds")


def to_columns(using: str, row: Row) -> list[Any]:
    """As `to_rows`, for one."""
    return to_rows(using, [row])[0]


def to_rows(using: str, rows: Iterable[Row]) -> list[list[object]]:
    """Rows of plain values, instants and uuids as parameters for columns of the engine's tables.

    Asking each model field costs more than the insert.
    """
    link = connections[using]
    vendor, native = link.vendor, link.features.has_native_uuid_field
    return [
        [
            to_column(vendor, value)
            if isinstance(value, datetime)
            else (value.hex if not native and isinstance(value, UUID) else value)
            for value in row
        ]
        for row in rows
    ]


def from_column(value: Any) -> datetime | None:
    """What a UTC column or the database's clock gives, as an aware instant."""
    if value is None or getattr(value, "tzinfo", None) is UTC:
        return value  # type: ignore[no-any-return]
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    assert isinstance(value, datetime)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
