"""Term leases: one scheduler at a time does a piece of housekeeping, whoever comes first. No leader is elected."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F, QuerySet

from onebeat.db import database_clock, upserts, utc_columns
from onebeat.models import Lease
from onebeat.models.instants import DatabaseNow

#: The name of the lease under which one scheduler sweeps and prunes.
HOUSEKEEPING = "housekeeping"


def take(using: str, name: str, holder: int, span: timedelta) -> int | None:
    """Take a lease that nobody holds. Returns its term, which nobody has had before; None while somebody holds it."""
    now = database_clock.now(using)
    rows = Lease.objects.using(using).filter(pk=name)
    if not rows.exists():
        start = utc_columns.to_columns(using, [name, 0, now, 0])
        upserts.insert_or_lose(using, Lease._meta.db_table, ["name", "term", "lease_until", "place"], [start], ["name"])
    term = rows.filter(lease_until__lte=now).values_list("term", flat=True).first()
    if term is None:
        return None
    # Two may have come so far: the term that both read is there for one of them.
    won = rows.filter(term=term).update(term=F("term") + 1, holder=holder, lease_until=now + span)
    return term + 1 if won else None


def renew(using: str, name: str, term: int, span: timedelta) -> bool:
    """Hold on for another `span`. False: it ended, or somebody else holds it."""
    now = database_clock.now(using)
    return bool(_of_term(using, name, term).filter(lease_until__gt=now).update(lease_until=now + span))


def release(using: str, name: str, term: int) -> None:
    """Let the next one have it at once."""
    _of_term(using, name, term).update(lease_until=DatabaseNow())


def holder(using: str, name: str, now: datetime) -> int | None:
    """Who has it now; None: nobody."""
    current = Lease.objects.using(using).filter(pk=name, lease_until__gt=now)
    return current.values_list("holder", flat=True).first()


def place(using: str, name: str) -> int:
    """Where the work goes on."""
    return Lease.objects.using(using).filter(pk=name).values_list("place", flat=True).first() or 0


def move(using: str, name: str, term: int, to: int) -> bool:
    """Say where the work goes on. False: another has it by now."""
    return bool(_of_term(using, name, term).update(place=to))


def _of_term(using: str, name: str, term: int) -> QuerySet[Lease, Lease]:
    return Lease.objects.using(using).filter(pk=name, term=term)
