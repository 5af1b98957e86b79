"""Batches: one lease for all that one claim took. Whatever happens to the lease is the work of one row.

An occurrence names its batch by the claim's token and keeps the name when it is settled: its state tells whether it is
still open. So no column that an index holds changes when it is settled, starts and ends. A batch that nobody holds is
an occurrence that waits for whoever comes first: a run that was asked for, one given back, one to be tried again later.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from onebeat.db import database_clock
from onebeat.db.reads import among
from onebeat.models import ClaimedBatch, Occurrence
from onebeat.models.instants import DatabaseNow

TABLE = "onebeat_batch"
#: Tokens begin with the time in steps of 4096 seconds: those of one time lie together in the ledger's index.
_STEP, _RANDOM = 12, 43


def new_token(now: datetime) -> int:
    """The name of a new batch. Mostly random: where commits are lost a counter would give the same one out again."""
    return int(now.timestamp()) >> _STEP << _RANDOM | secrets.randbits(_RANDOM)


def add(using: str, token: int, holder: int | None, until: datetime) -> None:
    """Add a batch, in the transaction that writes its occurrences. `holder`: the key of the `Beat` that may publish
    them until then; None: nobody, and anyone may claim them from then on.
    """
    ClaimedBatch.objects.using(using).create(token=token, holder=holder, lease_until=until)


def extend(using: str, token: int, span: timedelta) -> bool:
    """Hold on for another `span`. False: the lease has ended, or others have the batch."""
    now = database_clock.now(using)
    return bool(_one(using, token).filter(lease_until__gt=now).update(lease_until=now + span))


def give_back(using: str, token: int) -> None:
    """Let anyone claim at once what is still open of it. That it was claimed does not count then."""
    _one(using, token).update(holder=None, lease_until=DatabaseNow())


def lock_lost(using: str, now: datetime, limit: int) -> dict[int, int | None]:
    """Lock batches whose lease has ended, those that ended first. Returns who held each, by token."""
    rows = ClaimedBatch.objects.using(using).select_for_update(skip_locked=True).filter(lease_until__lte=now)
    return dict(rows.order_by("lease_until").values_list("token", "holder")[:limit])


def close(using: str, tokens: Iterable[int]) -> None:
    """Remove those of these batches of which nothing is open any more. A settled batch never opens again.

    In two statements: within one that deletes, MySQL would wait for whoever holds one of the occurrences.
    """
    done = set(tokens)
    done -= set(open_ones(using, done).values_list("claim_token", flat=True).distinct())
    if done:
        ClaimedBatch.objects.using(using).filter(among(using, "token", done)).delete()


def open_ones(using: str, tokens: Collection[int] | None = None) -> QuerySet[Occurrence, Any]:
    """The claimed occurrences, found by their batches; `tokens`: of these alone."""
    if tokens is not None:
        return _claimed(using).filter(among(using, "claim_token", tokens))
    return _claimed(using).filter(claim_token__in=ClaimedBatch.objects.using(using).values("token"))


def lease_end(using: str, token: int | None) -> datetime | None:
    """Until when a batch is somebody's; None: nobody holds it."""
    taken = _one(using, token or 0).exclude(holder=None)
    return taken.values_list("lease_until", flat=True).first()


def _one(using: str, token: int) -> QuerySet[ClaimedBatch, ClaimedBatch]:
    return ClaimedBatch.objects.using(using).filter(token=token)


def _claimed(using: str) -> QuerySet[Occurrence, Any]:
    return Occurrence.objects.using(using).filter(state=Occurrence.State.CLAIMED)
