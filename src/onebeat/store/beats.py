"""Which schedulers are at work, and since when at least one of them has been able to send without a break."""

from __future__ import annotations

import os
import socket
from datetime import datetime, timedelta
from importlib.metadata import version

from django.db.models import Max, Min

from onebeat.core import clock
from onebeat.models import Beat
from onebeat.models.instants import DatabaseNow
from onebeat.store import vendors

#: How long the row of a process that has gone is kept, for people who ask what happened.
_KEPT = timedelta(days=7)


#: What the version of a scheduler that does not run the engine ends with.
CLASSIC = " classic"


def register(using: str, kind: str = "") -> int:
    """Add a row for this process and return its key. Rows of processes long gone are deleted."""
    now = vendors.now(using)
    Beat.objects.using(using).filter(seen_at__lt=now - _KEPT).delete()
    row = Beat(
        host=socket.gethostname()[:255],
        pid=os.getpid(),
        version=version("onebeat") + kind,
        started_at=now,
        seen_at=now,
    )
    row.save(using=using)
    return row.pk


def report(using: str, pk: int, *, able_since: datetime | None, lag: timedelta) -> bool:
    """Say that this scheduler is at work. `able_since`: since when it could send; None while its broker is away.

    Returns False when its row is gone.
    """
    skew = clock.host_now() - vendors.now(using)
    done = (
        Beat.objects.using(using)
        .filter(pk=pk)
        .update(
            seen_at=DatabaseNow(),
            able_since=able_since,
            lag_ms=max(0, round(lag.total_seconds() * 1000)),
            skew_ms=round(skew.total_seconds() * 1000),
        )
    )
    return done > 0


def able_since(using: str, now: datetime, away: timedelta) -> datetime | None:
    """Since when some scheduler has been able to send; None when none is. Schedulers not seen for `away` do not
    count.
    """
    rows = Beat.objects.using(using).filter(seen_at__gt=now - away, stopped_at=None)
    since: datetime | None = rows.aggregate(since=Min("able_since"))["since"]
    return since


def last_seen(using: str) -> datetime | None:
    """When a scheduler that has not stopped was last seen; None when there is none."""
    seen: datetime | None = Beat.objects.using(using).filter(stopped_at=None).aggregate(seen=Max("seen_at"))["seen"]
    return seen


def stop(using: str, pk: int) -> None:
    """Say that this scheduler has stopped."""
    Beat.objects.using(using).filter(pk=pk).update(stopped_at=DatabaseNow(), able_since=None)
