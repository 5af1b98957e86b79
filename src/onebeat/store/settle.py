"""Settle: record what became of a claim, only where the claim is still ours."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import F

from onebeat.models import Occurrence
from onebeat.models.instants import DatabaseNow
from onebeat.store.batches import among


def still_mine(using: str, token: int, ids: Iterable[int]) -> set[int]:
    """Which of these occurrences may still be published under this claim, asked of the database's clock."""
    rows = _held(using, token, ids).filter(lease_until__gt=DatabaseNow())
    return set(rows.values_list("pk", flat=True))


def sent(using: str, token: int, ids: Iterable[int]) -> int:
    """The broker has these. Returns how many were still ours to record."""
    rows = _held(using, token, ids)
    return rows.update(state=Occurrence.State.SENT, sent_at=DatabaseNow(), claim=None, lease_until=None)


def refused(using: str, token: int, pk: int, detail: str) -> None:
    """This one can't be sent as it is: set aside with its reason."""
    _held(using, token, [pk]).update(
        state=Occurrence.State.SKIPPED, reason="refused", detail=detail, claim=None, lease_until=None
    )


def postpone(using: str, token: int, pk: int, until: datetime) -> None:
    """Give this one back, but not before `until`."""
    _held(using, token, [pk]).update(lease_until=until, claims=F("claims") - 1)


def release(using: str, token: int, ids: Iterable[int]) -> int:
    """Give these back: any scheduler may claim them at once. A claim that was given back does not count as one."""
    return _held(using, token, ids).update(lease_until=DatabaseNow(), claims=F("claims") - 1)


def _held(using: str, token: int, ids: Iterable[int]) -> models.QuerySet[Occurrence, Any]:
    rows = Occurrence.objects.using(using).filter(among(using, "pk", ids))
    return rows.filter(claim=token, state=Occurrence.State.CLAIMED)
