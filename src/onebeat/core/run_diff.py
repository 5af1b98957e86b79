"""The coming runs of a rule, and what a change of rule does to them. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal

from onebeat.core import nominal_times
from onebeat.core.recurrence import Cron, Recurrence

Fate = Literal["same", "new", "gone", "moved"]

_DAY = timedelta(days=1)
#: Clock changes are looked for this far ahead: each zone that has them has two a year.
_YEAR = 370
#: Runs this near to a clock change may be touched by it.
_NEAR = timedelta(hours=4)
_MOST_NEAR = 500


@dataclass(frozen=True, slots=True)
class Run:
    """A coming run and what a change does to it; `before` is the instant it is moved from."""

    at: datetime
    fate: Fate = "same"
    before: datetime | None = None


def coming(
    recurrence: Recurrence,
    now: datetime,
    count: int,
    *,
    start_time: datetime | None = None,
    expires: datetime | None = None,
    one_off: bool = False,
) -> list[datetime]:
    """The next nominal times after `now`, `count` at most; one for a one-off."""
    found: list[datetime] = []
    at = nominal_times.first(recurrence, now, start_time=start_time, expires=expires)
    while at is not None and len(found) < (1 if one_off else count):
        found.append(at)
        at = nominal_times.following(recurrence, at, expires=expires)
    return found


def compare(before: list[datetime], after: list[datetime], count: int) -> list[Run]:
    """What becomes of the coming runs when the times `before` give way to those `after`.

    Both lists hold the next `count` times, fewer when no more follow. As many gone as new ones, each nearer to its
    partner than the gone ones are to each other, count as moved. Otherwise only the time is compared that both lists
    speak of: beyond the end of a full one nothing is known.
    """
    gone, fresh = sorted(set(before) - set(after)), sorted(set(after) - set(before))
    if gone and len(gone) == len(fresh) and _pairs(gone, fresh):
        moved = [Run(at, "moved", was) for was, at in zip(gone, fresh, strict=True)]
        return sorted([*moved, *(Run(at) for at in after if at in before)], key=lambda run: run.at)
    ends = [times[-1] for times in (before, after) if len(times) >= count]
    end = min(ends) if ends else None
    old = [at for at in before if end is None or at <= end]
    new = [at for at in after if end is None or at <= end]
    fates = {at: Run(at, "gone") for at in old} | {at: Run(at, "same" if at in old else "new") for at in new}
    return [fates[at] for at in sorted(fates)]


def _pairs(gone: list[datetime], fresh: list[datetime]) -> bool:
    shifts = [abs(at - was) for was, at in zip(gone, fresh, strict=True)]
    gaps = [later - sooner for sooner, later in pairwise(gone)]
    return not gaps or max(shifts) < min(gaps)


def around_clock_changes(cron: Cron, now: datetime) -> Iterator[datetime]:
    """The runs near the next two clock changes of the rule's zone, within a year or so."""
    day, changes = now, 0
    for _ in range(_YEAR):
        later = day + _DAY
        if day.astimezone(cron.tz).utcoffset() != later.astimezone(cron.tz).utcoffset():
            changes += 1
            yield from _near(cron, _moment(cron, day, later))
            if changes == 2:
                return
        day = later


def _moment(cron: Cron, low: datetime, high: datetime) -> datetime:
    """The instant between two at which the zone's offset changes, to the second."""
    offset = low.astimezone(cron.tz).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        if middle.astimezone(cron.tz).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return high


def _near(cron: Cron, change: datetime) -> Iterator[datetime]:
    at = cron.after(change - _NEAR)
    for _ in range(_MOST_NEAR):
        if at is None or at > change + _NEAR:
            return
        yield at
        at = cron.after(at)
