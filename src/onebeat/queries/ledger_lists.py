"""Rows of the ledger for lists: what an index finds, and the newest of what none finds."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db import connections
from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL

from onebeat.db import expressions
from onebeat.models import ClaimedBatch, Occurrence, PeriodicTask

Rows = QuerySet[Occurrence]

#: A search finds the occurrences of this many tasks at most.
TASKS = 1000
#: How an index finds those in a state: by a word of why. The claimed are found by their batches.
_INDEXED = {"failed": Q(error__gt=""), "skipped": Q(reason__gt="")}


def in_state(rows: Rows, state: str, reason: str = "") -> Rows:
    """Those in a state; of the skipped, if one is given, those with this reason."""
    if state == Occurrence.State.CLAIMED:
        rows = rows.filter(claim_token__in=ClaimedBatch.objects.using(rows.db).values("token"))
    rows = rows.filter(_INDEXED.get(state, Q()), state=state)
    return rows.filter(reason=reason) if reason else rows


def indexed(using: str, state: str) -> bool:
    """Whether an index of this database finds the rows in a state in the order of their keys; "": all rows."""
    if state in ("failed", "skipped"):
        return bool(connections[using].features.supports_partial_indexes)
    return state in ("", "claimed")


def since(rows: Rows, instant: datetime) -> Rows:
    """Those whose nominal time is not before an instant."""
    return rows.filter(due_at__gte=instant)


def newest(rows: Rows, limit: int) -> Rows | None:
    """Those among the newest `limit` rows of the ledger; None if there are not more than that."""
    ledger = Occurrence.objects.using(rows.db)
    last = ledger.order_by("-pk").values_list("pk", flat=True).first() or 0
    return rows.filter(pk__gt=last - limit) if ledger.filter(pk__lte=last - limit).exists() else None


def found(rows: Rows, text: str) -> Rows:
    """Those with this message id, or of the tasks whose name has the text. The names are looked up among the tasks that
    exist: the ledger may have a hundred rows for each of them.
    """
    try:
        return rows.filter(celery_task_id=uuid.UUID(text))
    except ValueError:  # no id, so it is a part of a name
        pass
    sql, params = expressions.holds(rows.db, PeriodicTask._meta.db_table, ["name"], text)
    named = PeriodicTask.objects.using(rows.db).filter(RawSQL(sql, params, output_field=BooleanField())).order_by()
    tasks = list(named.values_list("pk", flat=True)[:TASKS])
    return rows.filter(Q(task_id__in=tasks) if tasks else Q(task_name=text))
