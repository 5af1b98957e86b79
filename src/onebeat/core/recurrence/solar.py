"""The sun's events at a place: dawns, sunrise, noon, sunset, dusks.

The sun's height comes from ephem; the search is ours. Noons and midnights of the sun cut time into half days,
the same cuts whoever asks. An event lies where the height passes its horizon between two cuts, so each event
has one instant, and days on which it does not happen are passed over, however many they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

from onebeat.core.recurrence.base import utc
from onebeat.errors import InvalidSchedule, SolarUnavailable

#: Degrees above the horizon, whether the sun's upper edge counts rather than its centre, and whether it goes
#: up (1), goes down (-1) or culminates (0). Names and horizons are Celery's; -0:34 is the usual allowance for
#: refraction.
_EVENTS: dict[str, tuple[float, bool, Literal[-1, 0, 1]]] = {
    "dawn_astronomical": (-18, False, 1),
    "dawn_nautical": (-12, False, 1),
    "dawn_civil": (-6, False, 1),
    "sunrise": (-34 / 60, True, 1),
    "solar_noon": (0, False, 0),
    "sunset": (-34 / 60, True, -1),
    "dusk_civil": (-6, False, -1),
    "dusk_nautical": (-12, False, -1),
    "dusk_astronomical": (-18, False, -1),
}
EVENTS = tuple(_EVENTS)

#: Nearer to a pole the sun goes round at one height, and noon and sunrise lose their meaning.
MAX_LATITUDE = 89.9

#: The day count of ephem starts here.
_DAY_ZERO = datetime(1899, 12, 31, 12, tzinfo=UTC)
_DAY = timedelta(days=1)
_END = datetime.max.replace(tzinfo=UTC)
#: Every event happens at least once a year everywhere: the sun's yearly range is wider than any of the
#: horizons.
_HALF_DAYS = 2 * 400
#: The real sun is at most 17 minutes later or earlier than the mean one (the equation of time), in days.
_SUN_IS_LATE = 18 / 1440
_HALF_SECOND = 0.5 / 86400


@dataclass(frozen=True, slots=True)
class Solar:
    """One of EVENTS as seen from a place, in degrees: north and east are positive.

    Instants are rounded to the second. Raises InvalidSchedule (field "event", "latitude" or "longitude") for values
    out of range, SolarUnavailable where ephem is not installed.
    """

    event: str
    latitude: float | Decimal
    longitude: float | Decimal

    def __post_init__(self) -> None:
        if self.event not in _EVENTS:
            raise InvalidSchedule("event", self.event, f"one of {', '.join(EVENTS)} is needed")
        object.__setattr__(self, "latitude", _degrees("latitude", self.latitude, MAX_LATITUDE))
        object.__setattr__(self, "longitude", _degrees("longitude", self.longitude, 180))
        _ephem()

    def after(self, instant: datetime) -> datetime | None:
        """The first event strictly later than `instant`, on whatever day it next happens.

        None when that is past the year 9999.
        """
        instant = utc(instant)
        latitude, longitude = float(self.latitude), float(self.longitude)
        cut = _cut_before((instant - _DAY_ZERO) / _DAY, longitude)
        for number in range(cut, cut + _HALF_DAYS):
            found = _event(self.event, latitude, longitude, number)
            if found is not None and (moment := _instant(found)) > instant:
                return moment if moment < _END else None
        return None


def _cut_before(time: float, longitude: float) -> int:
    """The last cut that is surely not later than `time`. Even cuts are midnights of the sun, odd ones noons."""
    return int((time + longitude / 360 - _SUN_IS_LATE) * 2 // 1) + 1


@lru_cache(maxsize=4096)
def _event(event: str, latitude: float, longitude: float, number: int) -> float | None:
    """The event between the cut of that number and the next; None if it does not happen there."""
    horizon, upper_edge, direction = _EVENTS[event]
    sky = _Sky(latitude, longitude, math.radians(horizon), upper_edge)
    if direction == 0:
        return sky.cut(number) if number % 2 else None
    start, end = sky.cut(number), sky.cut(number + 1)
    up = sky.height(start) < 0
    if (sky.height(end) < 0) == up or up != (direction > 0):
        return None
    while end - start > _HALF_SECOND:
        middle = (start + end) / 2
        if (sky.height(middle) < 0) == up:
            start = middle
        else:
            end = middle
    return end


class _Sky:
    """The sun over one place, at times in days of ephem."""

    def __init__(self, latitude: float, longitude: float, horizon: float, upper_edge: bool) -> None:
        ephem = _ephem()
        self._sun = ephem.Sun()
        self._place = ephem.Observer()
        self._place.lat = math.radians(latitude)
        self._place.lon = math.radians(longitude)
        self._place.pressure = 0
        self._east = longitude / 360
        self._horizon = horizon
        self._upper_edge = upper_edge

    def cut(self, number: int) -> float:
        """When the sun crosses the meridian: by the mean sun, then twice by the real one, to the millisecond."""
        time = (number - 1) / 2 - self._east
        for _ in range(2):
            self._look(time)
            behind = math.pi * ((number + 1) % 2) - float(self._sun.ha)
            time += math.remainder(behind, math.tau) / math.tau
        return time

    def height(self, time: float) -> float:
        """How far the sun stands above the horizon of the event, in radians."""
        self._look(time)
        edge = float(self._sun.radius) if self._upper_edge else 0.0
        return float(self._sun.alt) + edge - self._horizon

    def _look(self, time: float) -> None:
        self._place.date = time
        self._sun.compute(self._place)


def _instant(time: float) -> datetime:
    """An ephem time to the second; the nearest instant that a datetime can hold, at the two ends of the calendar."""
    try:
        return _DAY_ZERO + timedelta(seconds=round(time * 86400))
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC) if time < 0 else _END


def _degrees(field: str, value: float | Decimal, limit: float) -> float:
    try:
        degrees = float(value)
    except (TypeError, ValueError, OverflowError):
        degrees = math.nan
    if not -limit <= degrees <= limit:
        raise InvalidSchedule(field, value, f"degrees from -{limit} to {limit} are needed")
    return degrees


@lru_cache(maxsize=1)
def _ephem() -> Any:
    try:
        import ephem
    except ImportError:
        raise SolarUnavailable from None
    return ephem
