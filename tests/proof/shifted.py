"""A database whose clock is somewhere else: near a change of the clocks, say. For processes of a test alone."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

VARIABLE = "ONEBEAT_PROOF_SHIFT"


def shift() -> timedelta:
    """How far ahead of the real time the database's clock is in this process."""
    return timedelta(seconds=float(os.environ.get(VARIABLE, "0")))


def apply(host: timedelta = timedelta(0)) -> None:
    """Move the database's clock as the environment says, and this host's own by `host` on top of that.

    SQLite has no clock but the host's, which is the database's there.
    """
    from django.utils import timezone

    from onebeat.core import clock
    from onebeat.store import vendors

    seconds = shift().total_seconds()
    if not seconds and not host:
        return
    vendors._CLOCK["postgresql"] = f"(clock_timestamp() + interval '{seconds} seconds') AT TIME ZONE 'UTC'"
    vendors._CLOCK["mysql"] = f"(UTC_TIMESTAMP(6) + INTERVAL {seconds:.6f} SECOND)"
    sqlite = os.environ.get("ONEBEAT_TEST_DB", "").find("sqlite") >= 0
    ahead = shift() if sqlite else shift() + host

    def now() -> datetime:
        return datetime.now(UTC) + ahead

    timezone.now = now  # Django's own, for its automatic fields
    clock.use(clock.Source(now=now))
