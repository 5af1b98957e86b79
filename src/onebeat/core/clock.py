"""The one door through which time enters.

Everything that asks for "now" asks here, or asks the database through `onebeat.db.database_clock`, which asks here
first whether something stands in its place. A test pins the clock and moves it, or gives a source of its own; nothing
is patched and nobody sleeps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime


def _host() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Source:
    """Where time comes from. Each part may be another than this host's own."""

    #: The host's idea of now, aware UTC.
    now: Callable[[], datetime] = _host
    #: The database's idea of now, aware UTC; None: the database is asked.
    database: Callable[[], datetime] | None = None
    #: Seconds that only grow.
    monotonic: Callable[[], float] = time.monotonic
    #: Waits so many seconds.
    pause: Callable[[float], None] = time.sleep


_source = Source()
_pinned: datetime | None = None


def pinned() -> datetime | None:
    """The instant the clock is pinned to, or None when time runs."""
    return _pinned


def host_now() -> datetime:
    """This host's idea of now, aware UTC. For display and for SQLite, whose clock is the host's; never for
    decisions.
    """
    return _pinned if _pinned is not None else _source.now()


def database_now() -> datetime | None:
    """What stands in the place of the database's clock; None: ask the database."""
    if _pinned is not None or _source.database is None:
        return _pinned
    return _source.database()


def monotonic() -> float:
    """Seconds that only grow, for measuring how long something took. A pinned clock does not hold them."""
    return _source.monotonic()


def pause(seconds: float) -> None:
    """Wait before trying again. Real time even under a pinned clock: what is waited for is another process."""
    _source.pause(seconds)


def use(source: Source) -> None:
    """Take time from `source` in this process from now on."""
    global _source
    _source = source


@contextmanager
def using(source: Source) -> Iterator[None]:
    """Take time from `source` until the block ends."""
    before = _source
    use(source)
    try:
        yield
    finally:
        use(before)


def move(instant: datetime) -> None:
    """Move a pinned clock to `instant` (aware). Raises ValueError for a naive instant."""
    global _pinned
    if instant.tzinfo is None:
        raise ValueError("a clock is pinned to an aware instant")
    _pinned = instant.astimezone(UTC)


@contextmanager
def pin(instant: datetime) -> Iterator[None]:
    """Hold the clock of this process at `instant` (aware) until the block ends; `move` sets it further."""
    global _pinned
    before = _pinned
    move(instant)
    try:
        yield
    finally:
        _pinned = before
