"""Stretches in which no scheduler was able to send: the answer to "why was it not sent", afterwards."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Max, Q

from onebeat.db import upserts, utc_columns
from onebeat.models import Beat, Outage


def able_until(using: str) -> datetime | None:
    """When some scheduler last said that it was able to send; None if none ever did."""
    last: datetime | None = Beat.objects.using(using).aggregate(last=Max("able_until"))["last"]
    return last


def ended(using: str, now: datetime, unseen_for: timedelta, *, beat: int, waited: bool, lived: bool) -> Outage | None:
    """A scheduler is able to send, and no other is: record the stretch in which nobody was.

    `waited`: it was at work all the time and its broker did not answer. `lived`: its process was there, and did not
    come to its work. Of several that find the same stretch one records it. Returns what it recorded or found.
    """
    began = able_until(using)
    if began is None or began >= now:
        return None
    # Another one that could be asked meanwhile was not able either: then it was the broker.
    others = Beat.objects.using(using).filter(seen_at__gt=now - unseen_for, stopped_at=None).exclude(pk=beat)
    kind = Outage.Kind.DOWN
    if waited or others.filter(able_since=None, started_at__lt=now - unseen_for).exists():
        kind = Outage.Kind.BROKER
    elif lived:
        kind = Outage.Kind.DATABASE
    row = Outage(kind=kind, began_at=began, ended_at=now)
    values = utc_columns.to_columns(using, [kind, began, now])
    upserts.insert_or_lose(using, Outage._meta.db_table, ["kind", "began_at", "ended_at"], [values], ["began_at"])
    return row


def over(using: str, instant: datetime) -> Outage | None:
    """The recorded outage that `instant` lies in."""
    rows = Outage.objects.using(using).filter(Q(began_at__lte=instant, ended_at__gte=instant))
    return rows.order_by("began_at").first()
