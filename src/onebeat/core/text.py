"""Instants, spans and pauses as text, for people in UTC, for machines as ISO 8601; and foreign text for a column."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import overload


def shown(instant: datetime) -> str:
    """An instant for people: UTC, with a fraction only where it has one."""
    text = instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    return text.removesuffix(".000000") + " UTC"


def span(duration: timedelta) -> str:
    """A duration for people, in its two largest units; below a minute in seconds with one decimal."""
    seconds = duration.total_seconds()
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = int(seconds // 60)
    days, hours = divmod(minutes // 60, 24)
    parts = [(days, "d"), (hours, "h"), (minutes % 60, "min"), (int(seconds % 60), "s")]
    named = [f"{number} {unit}" for number, unit in parts if number]
    return " ".join(named[:2])


@overload
def iso(instant: datetime) -> str: ...
@overload
def iso(instant: datetime | None) -> str | None: ...
def iso(instant: datetime | None) -> str | None:
    """An instant for machines, in UTC; None stays None."""
    return None if instant is None else instant.astimezone(UTC).isoformat()


def storable(text: str, limit: int) -> str:
    """Somebody else's text as every database's text column takes it: at most `limit` letters, without what PostgreSQL
    (NUL) or any of them (half a surrogate pair) refuses.
    """
    return text[:limit].replace("\0", "").encode("utf-8", "backslashreplace").decode()[:limit]


def by_whom(by: str, why: str) -> str:
    """Who paused and why, to follow a word such as "paused"; empty if neither is known."""
    return (f" by {by}" if by else "") + (f": {why}" if why else "")


def all_paused(by: str, why: str) -> str:
    """That everything is paused, by whom and why."""
    return f"everything is paused{by_whom(by, why)}"
