"""Settle: record what became of a claim, only where the claim is still ours."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django.db import connections, models
from django.db.models import Case, F, Value, When
from django.db.models.functions import Least

from onebeat import signals
from onebeat.core.reasons import Reason
from onebeat.core.text import storable
from onebeat.db import database_clock, transactions
from onebeat.db.reads import among, among_sql
from onebeat.models import Occurrence
from onebeat.store import batches, events
from onebeat.store.occurrences import TABLE, Claimed

#: Where counts of claims and failures end: a broker that refuses for days must not overflow their columns.
MANY = 32_000
#: How many letters of an error are kept.
_LONGEST = 2000


def still_mine(using: str, token: int, ids: Iterable[int]) -> set[int]:
    """Which of these occurrences may still be published under this claim, asked of the database's clock."""
    clock, told = database_clock.clock_sql(using)
    where, params = _mine(using, token, ids)
    with connections[using].cursor() as cursor:
        leased = f"EXISTS (SELECT 1 FROM {batches.TABLE} WHERE token = %s AND lease_until > {clock})"
        cursor.execute(f"SELECT id FROM {TABLE} WHERE {where} AND {leased}", [*params, token, *told])
        return {row[0] for row in cursor.fetchall()}


def sent(using: str, token: int, ids: Iterable[int]) -> int:
    """The broker has these. Returns how many were still ours to record."""
    clock, told = database_clock.clock_sql(using)
    where, params = _mine(using, token, ids)
    what = f"state = '{Occurrence.State.SENT.value}', sent_at = {clock}"
    with connections[using].cursor() as cursor:
        cursor.execute(f"UPDATE {TABLE} SET {what} WHERE {where}", [*told, *params])
        return int(cursor.rowcount)


def emit_sent(using: str, those: Collection[Claimed]) -> None:
    """Increment the counter of sent messages and emit `task_sent` for each."""
    events.count(using, events.SENT, len(those))
    if not signals.task_sent.has_listeners(Occurrence):
        return
    for one in those:
        events.sent(using, one.task.id, one.task.name, one.due_at, one.run, one.id, one.celery_task_id)


def refused(using: str, token: int, pk: int, detail: str) -> bool:
    """Record that an occurrence cannot be sent as it is, and why. Returns whether it was still ours to record."""
    kept = storable(detail, _LONGEST)
    return _held(using, token, [pk]).update(state=Occurrence.State.SKIPPED, reason=Reason.REFUSED, detail=kept) > 0


def postpone(using: str, token: int, pk: int, until: datetime, failure: str = "") -> None:
    """Give an occurrence back in a batch of its own, to be claimed again from `until` on. `failure`: it failed by
    itself, and why; then that is counted, and kept for whoever asks. A run that somebody asked for keeps who did.
    """
    alone = batches.new_token(until)
    changes: dict[str, object] = {"claim_token": alone}
    if failure:
        why = Value(storable(f"publishing failed: {failure}", _LONGEST), output_field=models.TextField())
        changes["detail"] = Case(When(run=0, then=why), default=F("detail"))
        changes["publish_failures"] = Least(F("publish_failures"), MANY) + 1
    with transactions.short_transaction(using):
        if _held(using, token, [pk]).update(**changes):
            batches.add(using, alone, None, until)


def _mine(using: str, token: int, ids: Iterable[int]) -> tuple[str, list[Any]]:
    """`_held` as SQL with its parameters, for what is asked at every flush."""
    where, keys = among_sql(using, "id", ids)
    return f"{where} AND claim_token = %s AND state = '{Occurrence.State.CLAIMED.value}'", [*keys, token]


def _held(using: str, token: int, ids: Iterable[int]) -> models.QuerySet[Occurrence, Any]:
    rows = Occurrence.objects.using(using).filter(among(using, "pk", ids))
    return rows.filter(claim_token=token, state=Occurrence.State.CLAIMED)
