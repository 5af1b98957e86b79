"""Crontabs in a time zone, with Debian cron(8)'s rule about clock changes made exact.

A rule is *fixed* when neither its minute nor its hour text starts with a star. A fixed rule runs once for
each wall time it names: a time that a spring change leaves out runs at the first instant after the gap
(unless the gap is three hours or more), a time that an autumn change repeats runs in the first pass only. Any
other rule follows the wall clock as it is: every real minute that matches runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from onebeat.core.recurrence.base import utc
from onebeat.core.recurrence.fields import KINDS
from onebeat.core.recurrence.wall import WallRule, compiled
from onebeat.core.recurrence.zones import offset, transition, zone
from onebeat.errors import InvalidSchedule

#: cron(8) makes up for clock changes "of less than three hours".
_MADE_UP = timedelta(hours=3)
_MICROSECOND = timedelta(microseconds=1)
_UTC_KEYS = frozenset({"UTC", "Etc/UTC"})
#: A rule whose every match lies in a gap never runs. When is that certain? The calendar repeats after 400
#: years, and the zones' rules with it, once the changes that tzdata lists one by one are over.
_LISTED_CHANGES_END = 2100
_CALENDAR_CYCLE = 400


@dataclass(frozen=True, slots=True, init=False)
class Cron:
    """A crontab in an IANA time zone. Day of month and day of week must both match, as in Celery.

    The five texts are canonical. Equal when the texts and the zone are.
    """

    minute: str
    hour: str
    day_of_month: str
    month_of_year: str
    day_of_week: str
    tz: ZoneInfo
    _rule: WallRule = field(repr=False, compare=False)
    _is_utc: bool = field(repr=False, compare=False)

    def __init__(
        self,
        minute: object = "*",
        hour: object = "*",
        day_of_month: object = "*",
        month_of_year: object = "*",
        day_of_week: object = "*",
        tz: str | tzinfo = "UTC",
    ) -> None:
        """Each field is text, an int, or an iterable of them; `tz` is a zone or its name, in any letter case.

        Raises InvalidSchedule naming the field for a text outside the grammar, a rule that can never match, and an
        unknown zone.
        """
        rule = compiled(minute, hour, day_of_month, month_of_year, day_of_week)
        found = zone(tz)
        put = object.__setattr__
        put(self, "minute", rule.texts[0])
        put(self, "hour", rule.texts[1])
        put(self, "day_of_month", rule.texts[2])
        put(self, "month_of_year", rule.texts[3])
        put(self, "day_of_week", rule.texts[4])
        put(self, "tz", found)
        put(self, "_rule", rule)
        put(self, "_is_utc", found.key in _UTC_KEYS)

    @classmethod
    def parse(cls, text: str, tz: str | tzinfo = "UTC") -> Cron:
        """A crontab line of five fields: minute, hour, day of month, month, day of week. Raises InvalidSchedule."""
        fields = re.sub(r"\s*,\s*", ",", text).split()
        if len(fields) != len(KINDS):
            raise InvalidSchedule("cron", text, f"five fields are needed ({', '.join(KINDS)}), not {len(fields)}")
        minute, hour, day_of_month, month_of_year, day_of_week = fields
        return cls(minute, hour, day_of_month, month_of_year, day_of_week, tz)

    def __reduce__(self) -> tuple[type[Cron], tuple[str, ...]]:
        texts = (self.minute, self.hour, self.day_of_month, self.month_of_year, self.day_of_week)
        return Cron, (*texts, self.tz.key)

    def after(self, instant: datetime) -> datetime | None:
        """The first run strictly later than `instant`, in UTC; None when none follows."""
        if instant.tzinfo is not UTC:
            instant = utc(instant)
        if self._is_utc:
            return self._rule.first(instant.year, instant.month, instant.day, instant.hour, instant.minute + 1, UTC)
        try:
            return self._after_in_zone(instant)
        except OverflowError:  # later than any datetime
            return None

    def stands_for(self, run: datetime) -> datetime | None:
        """The first wall time that a clock change left out and that `run`, an instant of this rule, makes up for.

        Naive, a time of this rule's zone; None when the run is at its own wall time.
        """
        local, before = run.astimezone(self.tz), (run - _MICROSECOND).astimezone(self.tz)
        jump = offset(local) - offset(before)
        if not self._rule.fixed or not timedelta(0) < jump < _MADE_UP:
            return None
        wall = self._from((local - jump).replace(fold=0))
        return wall.replace(tzinfo=None) if wall is not None and wall < local else None

    def _after_in_zone(self, instant: datetime) -> datetime | None:
        try:
            local = instant.astimezone(self.tz)
        except OverflowError:
            if instant.year != 1:
                raise
            # West of Greenwich the first hours of UTC belong to a year before datetime's first.
            return self._real(self._rule.first(1, 1, 1, 0, 0, self.tz))
        wall = self._rule.first(local.year, local.month, local.day, local.hour, local.minute + 1, self.tz)
        if local.fold or (not self._rule.fixed and local.utcoffset() != local.replace(fold=1).utcoffset()):
            return self._in_repeat(local, wall)
        return self._real(wall)

    def _real(self, wall: datetime | None) -> datetime | None:
        """The instant at which `wall`, a match or None, runs: not before its first pass, and past any gap."""
        end = None
        while wall is not None:
            late = wall.replace(fold=1)
            if wall.utcoffset() == late.utcoffset():
                return wall.astimezone(UTC)
            before, after = offset(wall), offset(late)
            if before > after:  # it comes twice (PEP 495), and with fold 0 this is the first pass
                return wall.astimezone(UTC)
            change = transition(wall)
            if self._rule.fixed and after - before < _MADE_UP:
                return change
            end = end or max(wall.year, _LISTED_CHANGES_END) + _CALENDAR_CYCLE
            wall = self._from(change.astimezone(self.tz)) if wall.year < end else None
        return None

    def _in_repeat(self, local: datetime, wall: datetime | None) -> datetime | None:
        """As `_real` for `wall`, the next match, asked from `local` in a stretch of wall time that comes twice."""
        change = transition(local)
        end = (change + offset(local.replace(fold=0))).replace(tzinfo=self.tz)
        if self._rule.fixed:
            return self._real(self._from(end) if wall is not None and wall < end else wall)
        if not local.fold:
            if wall is not None and wall < end:
                return self._real(wall)
            wall = self._from(change.astimezone(self.tz))
        if wall is not None and wall < end:
            return wall.replace(fold=1).astimezone(UTC)
        return self._real(wall)

    def _from(self, moment: datetime) -> datetime | None:
        """The first match at or after a local moment, which may lie inside a minute: old offsets have seconds."""
        minute = moment.minute + bool(moment.second or moment.microsecond)
        return self._rule.first(moment.year, moment.month, moment.day, moment.hour, minute, self.tz)
