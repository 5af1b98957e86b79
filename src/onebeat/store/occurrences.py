"""The ledger's rows: inserting claims and skips. The unique key on (task_uid, due_at, run) decides who was first."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from onebeat.core import identity
from onebeat.core.catchup import Skip
from onebeat.core.reasons import Reason
from onebeat.db import upserts, utc_columns
from onebeat.db.reads import among, prepared
from onebeat.models import Fact, Occurrence
from onebeat.store import events
from onebeat.store.definitions import Definition

TABLE = "onebeat_occurrence"
#: With their PostgreSQL types.
_COLUMNS = {
    "task_id": "bigint",
    "task_uid": "bigint",
    "task_name": "text",
    "due_at": "timestamp",
    "run": "integer",
    "last_due_at": "timestamp",
    "state": "text",
    "reason": "text",
    "detail": "text",
    "into_at": "timestamp",
    "celery_task_id": "uuid",
    "claim_token": "bigint",
    "claims": "smallint",
    "beat_id": "bigint",
    "decided_at": "timestamp",
    "sent_at": "timestamp",
}
_UNIQUE = ("task_uid", "due_at", "run")
#: What differs among the rows of one claim, and what does not.
_OWN = {name: _COLUMNS[name] for name in ("task_id", "task_uid", "task_name", "due_at", "celery_task_id")}
_ALIKE = [name for name in _COLUMNS if name not in _OWN]
_NAMESPACE = "namespace"
_NOT_FINAL = [reason for reason in Reason if not reason.final]
#: An occurrence in one of these states is not finished, as far as anybody has said.
OPEN = (Occurrence.State.CLAIMED, Occurrence.State.SENT, Occurrence.State.STARTED)


def renew_namespace(using: str) -> uuid.UUID:
    """Give this database a namespace of its own, after it was copied: the ids it sends from now on are new."""
    value = uuid.uuid4()
    Fact.objects.using(using).update_or_create(name=_NAMESPACE, defaults={"value": str(value)})
    return value


@dataclass(frozen=True, slots=True)
class Skipped:
    """A decision not to send, to be recorded."""

    task: Definition
    task_uid: int
    skip: Skip
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Claimed:
    """One occurrence that this scheduler may publish until the lease ends."""

    id: int
    task: Definition
    task_uid: int
    due_at: datetime
    run: int
    celery_task_id: uuid.UUID
    #: How many times it has been claimed; more than once means that a scheduler was lost on the way.
    claims: int = 1
    #: How many times publishing it failed by itself although the broker answered.
    failures: int = 0


def namespace(using: str) -> uuid.UUID:
    """The random namespace of this database's task ids, made when it is first asked for."""
    known = Fact.objects.using(using).filter(pk=_NAMESPACE).values_list("value")
    value = next((row[0] for row in prepared(using, "namespace", [_NAMESPACE], lambda: known)), None)
    # Not inserted without a look: on MySQL an insert that loses locks the row, and each claim would wait for the other.
    if value is None:
        table = Fact._meta.db_table
        upserts.insert_or_lose(using, table, ["name", "value"], [[_NAMESPACE, str(uuid.uuid4())]], ["name"])
        (value,) = known.get()
    return uuid.UUID(value)


def claim(
    using: str,
    sends: Iterable[tuple[Definition, int, datetime]],
    *,
    token: int,
    beat: int,
    now: datetime,
) -> list[Claimed]:
    """Record that these (task, its uid, nominal time) are claimed. One that is in the ledger already is somebody
    else's, and is left out.
    """
    asked = {(uid, due_at): task for task, uid, due_at in sends}
    if not asked:
        return []
    space = namespace(using)
    ids = {key: identity.celery_task_id(space, *key) for key in asked}
    own = ((task.id, key[0], task.name, key[1], ids[key]) for key, task in asked.items())
    alike = (0, None, Occurrence.State.CLAIMED.value, "", "", None, token, 1, beat, now, None)
    rows, (same,) = utc_columns.to_rows(using, own), utc_columns.to_rows(using, [alike])
    inserted = upserts.insert_or_lose(
        using,
        TABLE,
        _OWN,
        rows,
        _UNIQUE,
        alike={name: (_COLUMNS[name], one) for name, one in zip(_ALIKE, same, strict=True)},
        returning=("id", "task_uid", "due_at"),
    )
    mine = _under(using, token) if inserted is None else _by_key(inserted)
    left = asked.keys() - mine.keys()
    if left and _revive(using, left, claim_token=token, claims=1, beat=beat, decided_at=now):
        mine = _under(using, token)
    claimed = [Claimed(pk, asked[key], *key, 0, ids[key]) for key, pk in mine.items()]
    return sorted(claimed, key=lambda one: (one.due_at, one.id))


def _under(using: str, token: int) -> dict[tuple[int, datetime], int]:
    """The occurrences of one claim, by the task's uid and nominal time."""
    rows = Occurrence.objects.using(using).filter(claim_token=token)
    return _by_key(rows.values_list("pk", "task_uid", "due_at"))


def _by_key(rows: Iterable[Sequence[Any]]) -> dict[tuple[int, datetime], int]:
    utc: Any = utc_columns.from_column
    return {(uid, utc(due_at)): pk for pk, uid, due_at in rows}


def _revive(using: str, keys: Collection[tuple[int, datetime]], **values: object) -> int:
    """Claim times that were skipped because of a change which has been taken back since. Returns how many there
    were.
    """
    rows = Occurrence.objects.using(using).filter(run=0, state=Occurrence.State.SKIPPED, reason__in=_NOT_FINAL)
    near = rows.filter(task_uid__in={uid for uid, _ in keys}, due_at__in={due_at for _, due_at in keys})
    done = 0
    for pk, uid, due_at, reason in near.values_list("pk", "task_uid", "due_at", "reason"):
        if (uid, due_at) in keys:
            done += rows.filter(pk=pk).update(
                state=Occurrence.State.CLAIMED,
                reason="",
                detail=f"was skipped before: {reason}",
                last_due_at=None,
                **values,
            )
    return done


def running(using: str, keys: Iterable[int]) -> dict[int, tuple[datetime, datetime]]:
    """Which of these occurrences are open: nominal time, and since when (sent, or else decided), by key."""
    rows = Occurrence.objects.using(using).filter(among(using, "pk", keys), state__in=OPEN)
    found = rows.values_list("pk", "due_at", "sent_at", "decided_at")
    return {pk: (due_at, sent_at or decided_at) for pk, due_at, sent_at, decided_at in found}


def newest(using: str, task_uid: int) -> datetime | None:
    """The newest nominal time of a task that the ledger speaks of."""
    row = Occurrence.objects.using(using).filter(task_uid=task_uid, run=0).order_by("-due_at").first()
    return None if row is None else row.last_due_at or row.due_at


def skip(using: str, skips: Iterable[Skipped], now: datetime) -> None:
    """Record verdicts not to send. A time that is in the ledger already keeps what it has."""
    rows = []
    space: uuid.UUID | None = None
    for one in skips:
        space = space or namespace(using)
        first, last = one.skip.first, one.skip.last
        detail = one.detail or one.skip.why
        if one.skip.into and not detail:
            detail = f"{'with' if one.skip.reason == Reason.OVERLAP else 'into'} {one.skip.into.isoformat()}"
        rows.append(
            (*(one.task.id, one.task_uid, one.task.name, first, 0, last if last > first else None),
             *(Occurrence.State.SKIPPED.value, one.skip.reason, detail, one.skip.into),
             *(identity.celery_task_id(space, one.task_uid, first), None, 0, None, now, None))
        )  # fmt: skip
        last_due_at = last if last > first else None
        events.skipped(using, one.task.id, one.task.name, first, one.skip.reason, detail, last_due_at=last_due_at)
    if rows:
        upserts.insert_or_lose(using, TABLE, _COLUMNS, utc_columns.to_rows(using, rows), _UNIQUE)
