"""Which schedulers are at work, and since when at least one of them has been able to send without a break."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from datetime import datetime, timedelta
from importlib.metadata import version

from django.db.models import Max, Min

from onebeat.core import clock
from onebeat.db import database_clock
from onebeat.models import Beat
from onebeat.models.instants import DatabaseNow


def register(using: str, unable_reason: str = "") -> int:
    """Add a row for this process, which is not able to send yet, and return its key."""
    now = database_clock.now(using)
    row = Beat(
        host=socket.gethostname()[:255],
        pid=os.getpid(),
        version=version("onebeat"),
        unable_reason=unable_reason,
        started_at=now,
        seen_at=now,
    )
    row.save(using=using)
    return row.pk


def report(
    using: str,
    pk: int,
    *,
    able_since: datetime | None,
    unable_reason: str,
    lag: timedelta,
    failed: int = 0,
    tally: Mapping[str, int] | None = None,
) -> bool:
    """Say that this scheduler is at work. `able_since`: since when it could send; None while it cannot, and then
    `unable_reason` says why, one of `Beat.Unable`.
    `failed`: how many messages it could not hand over so far. `tally`: what it has sent and skipped so far.

    Returns False when its row is gone.
    """
    skew = clock.host_now() - database_clock.now(using)
    done = (
        Beat.objects.using(using)
        .filter(pk=pk)
        .update(
            seen_at=DatabaseNow(),
            able_since=able_since,
            unable_reason=unable_reason,
            failed=failed,
            tally=json.dumps(tally or {}),
            **({} if able_since is None else {"able_until": DatabaseNow()}),
            lag_ms=max(0, round(lag.total_seconds() * 1000)),
            skew_ms=round(skew.total_seconds() * 1000),
        )
    )
    return done > 0


def able_since(using: str, now: datetime, unseen_for: timedelta, *, besides: int | None = None) -> datetime | None:
    """Since when some scheduler has been able to send; None when none is. Schedulers not seen for `unseen_for` do not
    count, nor does the one whose key is `besides`.
    """
    rows = Beat.objects.using(using).filter(seen_at__gt=now - unseen_for, stopped_at=None)
    if besides is not None:
        rows = rows.exclude(pk=besides)
    since: datetime | None = rows.aggregate(since=Min("able_since"))["since"]
    return since


def last_seen(using: str) -> datetime | None:
    """When a scheduler that has not stopped was last seen; None when there is none."""
    seen: datetime | None = Beat.objects.using(using).filter(stopped_at=None).aggregate(seen=Max("seen_at"))["seen"]
    return seen


def stop(using: str, pk: int) -> None:
    """Say that this scheduler has stopped."""
    rows = Beat.objects.using(using).filter(pk=pk)
    rows.filter(able_since__isnull=False).update(able_until=DatabaseNow())
    rows.update(stopped_at=DatabaseNow(), able_since=None)
