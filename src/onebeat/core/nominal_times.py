"""From a recurrence to the next time of a task: start, end, catching up and spreading. Pure functions."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

from onebeat.core.recurrence import Interval, Recurrence

_TICK = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOTHING = timedelta(0)
#: Most rules have a time within the last minute or hour; the step back grows from here.
_FIRST_STEP = timedelta(minutes=1)
_FIRST = datetime.min.replace(tzinfo=UTC)


def first(
    recurrence: Recurrence,
    reference: datetime,
    *,
    start_time: datetime | None = None,
    expires: datetime | None = None,
) -> datetime | None:
    """The first nominal time later than `reference`, not before `start_time` and not after `expires`.

    `start_time` is inclusive: a match at it counts, if it is later than `reference`. This is also what an
    edit asks, with the moment of the edit as reference: nothing fires for the past.
    """
    if start_time is not None and start_time > reference:
        reference = start_time - _TICK if start_time > _FIRST else start_time
    return following(recurrence, reference, expires=expires)


def following(recurrence: Recurrence, due_at: datetime, *, expires: datetime | None = None) -> datetime | None:
    """The next nominal time after `due_at`, or None when none follows or it lies after `expires`."""
    found = recurrence.after(due_at)
    return None if found is None or (expires is not None and found > expires) else found


def newest(recurrence: Recurrence, due_at: datetime, now: datetime) -> tuple[datetime, datetime | None]:
    """The newest nominal time at or before `now`, and the one after it.

    `due_at` is a nominal time at or before `now`; ValueError when it is later. However many times lie
    between, the work is small: a step back from `now`, doubled until a nominal time is in it, then halved
    until the last one is left.
    """
    if due_at > now:
        raise ValueError("the nominal time is later than now")
    if isinstance(recurrence, Interval):
        return max(due_at, recurrence.newest(now) or due_at), recurrence.after(now)
    # No nominal time lies in (quiet, now]; at least one lies in (busy, now], and `found` is the first of
    # those.
    quiet, step = now, _FIRST_STEP
    while True:
        busy = now - step if now - due_at > step else due_at
        found = recurrence.after(busy)
        if found is not None and found <= now:
            break
        if busy == due_at:
            return due_at, found
        quiet, step = busy, step * 2
    while (later := recurrence.after(found)) is not None and later <= now:
        busy = max(found, busy)
        middle = busy + (quiet - busy) / 2
        ahead = recurrence.after(middle)
        if ahead is not None and ahead <= now:
            busy, found = middle, ahead
        else:
            quiet, found = middle, later
    return found, later


def jitter(key: str, due_at: datetime, window: timedelta, next_due: datetime | None) -> timedelta:
    """How long after `due_at` the task named by `key` leaves: at least zero, less than `window`.

    Also less than the gap to `next_due`, so that the order of the times stands. The same answer everywhere,
    for ever.
    """
    limit = window if next_due is None else min(window, next_due - due_at)
    if limit <= _NOTHING:
        return _NOTHING
    seed = f"{key}/{(due_at - _EPOCH) // _TICK}".encode()
    number = int.from_bytes(hashlib.blake2b(seed, digest_size=8).digest(), "big")
    return _TICK * (number % (limit // _TICK))
