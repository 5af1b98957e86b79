"""Instants and durations as a test writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from onebeat.core.recurrence import zone
from onebeat.models.instants import to_utc

#: A year is 365 days here.
_UNITS = {"year": 365 * 86400, "week": 7 * 86400, "day": 86400, "hour": 3600, "minute": 60, "second": 1}
_EXAMPLE = "2027-03-28 01:59 Europe/Berlin"


def instant(moment: str | datetime) -> datetime:
    """An aware datetime, or a text: an ISO 8601 time with an offset, with the name of a zone after it, or of TIME_ZONE.

    Of a time that an autumn change repeats the first pass is meant. Raises `ValueError` for a text that is none, and
    for a time that a spring change leaves out.
    """
    if isinstance(moment, datetime):
        return to_utc(moment)
    text, _, name = moment.strip().rpartition(" ")
    try:
        if text and re.match(r"[A-Za-z]", name):
            local = datetime.fromisoformat(text).replace(tzinfo=zone(name))
            if local.astimezone(UTC).astimezone(local.tzinfo).replace(tzinfo=None) != local.replace(tzinfo=None):
                raise ValueError("the clocks leave this time out")
            return local.astimezone(UTC)
        return to_utc(datetime.fromisoformat(moment.strip()))
    except ValueError as error:
        raise ValueError(f"{moment!r} is no instant, such as {_EXAMPLE!r}: {error}") from error


def span(given: str | timedelta | None, units: dict[str, float]) -> timedelta:
    """A timedelta, a text such as "2 hours 30 minutes" or "1 year", or units by name. Raises `ValueError`."""
    found = given if isinstance(given, timedelta) else timedelta(0)
    if isinstance(given, str):
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?\b", given)
        if not parts or re.sub(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?\b", "", given).strip(" ,"):
            raise ValueError(f"{given!r} is no duration, such as '2 hours 30 minutes'")
        for number, unit in parts:
            if unit not in _UNITS:
                raise ValueError(f"{given!r}: {unit!r} is no unit; {', '.join(_UNITS)} are")
            found += timedelta(seconds=float(number) * _UNITS[unit])
    try:
        found += timedelta(**units)
    except TypeError as error:
        raise ValueError(f"{', '.join(units)}: days, hours, minutes and seconds are units") from error
    if found < timedelta(0):
        raise ValueError(f"time does not go back: {found}")
    return found
