"""A crontab as a rule about wall clocks: no zones here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import MAXYEAR, datetime, tzinfo
from functools import lru_cache

from onebeat.core.recurrence.days import KIND_OF_YEAR, Table, table
from onebeat.core.recurrence.fields import canonical_field, read

#: In the tables below: no value from here on.
_NONE = 255
#: 29 February on a given weekday, around a year such as 2100 that is no leap year: the longest wait there is.
_LONGEST_WAIT = 41


@dataclass(frozen=True, slots=True, eq=False)
class WallRule:
    """A crontab, compiled. `texts` are the five canonical texts, in crontab order."""

    texts: tuple[str, str, str, str, str]
    #: For each minute 0 to 60 the first matching one from there on, or _NONE; `hours` likewise for 0 to 24.
    minutes: bytes
    hours: bytes
    years: Table
    #: Whether neither the minute nor the hour text starts with a star (cron(8) of Debian).
    fixed: bool

    def first(
        self, year: int, month: int, day: int, hour: int, minute: int, tz: tzinfo | None = None
    ) -> datetime | None:
        """The first matching minute at or after the given one (`minute` may be 60), labelled with `tz`.

        Exact and bounded: None means that no datetime can hold the next one.
        """
        months = self.years[KIND_OF_YEAR[year % 400]]
        if months is None:
            return self._first_of_years(year + 1, tz)
        days = months[month] >> day
        if days & 1:
            at_hour = self.hours[hour]
            if at_hour == hour:
                at_minute = self.minutes[minute]
                if at_minute != _NONE:
                    return datetime(year, month, day, hour, at_minute, tzinfo=tz)
                at_hour = self.hours[hour + 1]
            if at_hour != _NONE:
                return datetime(year, month, day, at_hour, self.minutes[0], tzinfo=tz)
        days &= -2
        if not days:
            while not days:
                month += 1
                if month > 12:
                    return self._first_of_years(year + 1, tz)
                days = months[month]
            day = 0
        return datetime(year, month, day + (days & -days).bit_length() - 1, self.hours[0], self.minutes[0], tzinfo=tz)

    def _first_of_years(self, year: int, tz: tzinfo | None) -> datetime | None:
        years = self.years
        for candidate in range(year, min(year + _LONGEST_WAIT, MAXYEAR + 1)):
            months = years[KIND_OF_YEAR[candidate % 400]]
            if months is not None:
                month = next(number for number, days in enumerate(months) if days)
                days = months[month]
                day = (days & -days).bit_length() - 1
                return datetime(candidate, month, day, self.hours[0], self.minutes[0], tzinfo=tz)
        return None


def compiled(
    minute: object, hour: object, day_of_month: object, month_of_year: object, day_of_week: object
) -> WallRule:
    """The rule of five fields: text, ints or iterables of them. Raises InvalidSchedule."""
    return _compiled(
        _text("minute", minute),
        _text("hour", hour),
        _text("day_of_month", day_of_month),
        _text("month_of_year", month_of_year),
        _text("day_of_week", day_of_week),
    )


def _text(field: str, value: object) -> str:
    return value if type(value) is str else canonical_field(field, value)


@lru_cache(maxsize=16384)
def _compiled(minute: str, hour: str, day_of_month: str, month_of_year: str, day_of_week: str) -> WallRule:
    minutes, hours = read("minute", minute), read("hour", hour)
    date = (
        read("day_of_month", day_of_month),
        read("month_of_year", month_of_year),
        read("day_of_week", day_of_week),
    )
    return WallRule(
        texts=(minutes.text, hours.text, date[0].text, date[1].text, date[2].text),
        minutes=_following(minutes.mask, 60),
        hours=_following(hours.mask, 24),
        years=table(*date),
        fixed=not minutes.starred and not hours.starred,
    )


@lru_cache(maxsize=4096)
def _following(mask: int, size: int) -> bytes:
    """For each number from 0 to `size` the first one of the mask from there on, or _NONE."""
    answers = bytearray([_NONE] * (size + 1))
    for number in range(size - 1, -1, -1):
        answers[number] = number if mask >> number & 1 else answers[number + 1]
    return bytes(answers)


def check_crontab(
    minute: object, hour: object, day_of_month: object, month_of_year: object, day_of_week: object
) -> None:
    """Raise InvalidSchedule, naming the field, unless the five can be read and match on some day together."""
    compiled(minute, hour, day_of_month, month_of_year, day_of_week)
