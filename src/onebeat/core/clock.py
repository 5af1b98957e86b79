"""The one door through which time enters.

Everything that asks for "now" asks here, or asks the database through `onebeat.store.vendors`, which asks here first
whether a clock is pinned. A test pins the clock and moves it; nothing is patched and nobody sleeps.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

_pinned: datetime | None = None


def pinned() -> datetime | None:
    """The instant the clock is pinned to, or None when real time runs."""
    return _pinned


def host_now() -> datetime:
    """This host's idea of now, aware UTC. For display and for SQLite, whose clock is the host's; never for
    decisions.
    """
    return _pinned if _pinned is not None else datetime.now(UTC)


def monotonic() -> float:
    """Seconds that only grow, for measuring how long something took."""
    return time.monotonic()


def pause(seconds: float) -> None:
    """Wait before trying again. Real time even under a pinned clock: what is waited for is another process."""
    time.sleep(seconds)


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
