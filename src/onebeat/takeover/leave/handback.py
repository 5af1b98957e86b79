"""Giving the tables back to django-celery-beat: everything that was sent is written where its beat looks, and what is
the engine's own is taken out of the way. May be run again at any time; the engine starts from it as from a take-over.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Count, Max

from onebeat.conf import current
from onebeat.core import nominal_times as rules
from onebeat.core import planning
from onebeat.core.planning import State
from onebeat.core.reasons import Reason
from onebeat.core.recurrence import Recurrence
from onebeat.db import database_clock, transactions
from onebeat.errors import Unschedulable
from onebeat.models import Beat, Change, ClaimedBatch, Declared, Fact, Occurrence, PeriodicTask, TaskState
from onebeat.models.declarations import HANDED_BACK
from onebeat.models.instants import DatabaseNow, from_their_run, to_their_run, to_utc
from onebeat.store import definitions, plans, task_states
from onebeat.store.definitions import Definition
from onebeat.takeover.leave import dcb_semantics
from onebeat.takeover.leave.dcb_semantics import Difference

_BATCH = 500
#: What the old column holds at most.
_MANY = 2**31 - 1
#: A scheduler that was killed had written the runs of everything but its last seconds; longer, where somebody held the
#: rows.
_UNWRITTEN = timedelta(hours=1)


@dataclass(slots=True)
class Task:
    """What is to be done about one task: new values of its columns, and what would be different there."""

    id: int
    name: str
    enabled: bool
    columns: dict[str, object] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    #: Occurrences that a lost scheduler had claimed and nobody knows to be sent.
    unsent: int = 0

    @property
    def wrong(self) -> bool:
        """Whether it must not be left to django-celery-beat as it is."""
        return any(one.wrong for one in self.differences)


def alive(using: str) -> list[Beat]:
    """The schedulers at work on these tables."""
    since = database_clock.now(using) - timedelta(seconds=current().away_seconds)
    return list(Beat.objects.using(using).filter(stopped_at=None, seen_at__gt=since).order_by("pk"))


def look(using: str) -> Iterator[list[Task]]:
    """What there is to do, batch by batch; nothing is changed."""
    after: int | None = 0
    while after is not None:
        found, after = _batch(using, after)
        yield found


def give_back(using: str, *, disable: bool) -> Iterator[list[Task]]:
    """Do it, batch by batch, each in a transaction of its own. `disable`: also disable what is `wrong`."""
    after: int | None = 0
    while after is not None:
        with transactions.short_transaction(using):
            found, after = _batch(using, after, lock=True)
            for task in found:
                _write(using, task, disable)
            ids = [task.id for task in found]
            for rows, left in ((_open(using, ids), "to django-celery-beat"), (_asked(using, ids), "unsent")):
                rows.update(state=Occurrence.State.SKIPPED, reason=Reason.HANDED_BACK, detail=f"left {left}")
            # A plan that lay here while another beat was at work would be old, and its times sent again.
            TaskState.objects.using(using).filter(pk__in=ids).delete()
        yield found
    with transactions.short_transaction(using):
        TaskState.objects.using(using).all().delete()
        Change.objects.using(using).all().delete()
        ClaimedBatch.objects.using(using).all().delete()
        # Whoever is not alive has been killed, and what that one did not write is written now.
        Beat.objects.using(using).filter(stopped_at=None).update(stopped_at=DatabaseNow(), able_since=None)
        # Its beat will write the rows from whatever the settings say by then.
        Declared.objects.using(using).filter(source="settings").update(values="")
        Fact.objects.using(using).update_or_create(name=HANDED_BACK, defaults={"value": "1"})
    plans.touch(using)


def _write(using: str, task: Task, disable: bool) -> None:
    if disable and task.wrong and task.enabled:
        task.columns["enabled"] = False
    if task.columns:
        PeriodicTask._base_manager.using(using).filter(pk=task.id).update(**task.columns)


def _open(using: str, ids: list[int]) -> models.QuerySet[Occurrence, Any]:
    return Occurrence.objects.using(using).filter(task_id__in=ids, state=Occurrence.State.CLAIMED, run=0)


def _asked(using: str, ids: list[int]) -> models.QuerySet[Occurrence, Any]:
    """Runs that somebody asked for, of which its beat knows nothing."""
    return Occurrence.objects.using(using).filter(task_id__in=ids, state=Occurrence.State.CLAIMED, run__gt=0)


def _batch(using: str, after: int, *, lock: bool = False) -> tuple[list[Task], int | None]:
    """The tasks that follow the key `after`, and the last key; None at the end."""
    rows = PeriodicTask._base_manager.using(using).filter(pk__gt=after).order_by("pk")
    if lock:
        rows = rows.select_for_update()
    ids = list(rows.values_list("pk", flat=True)[:_BATCH])
    if not ids:
        return [], None
    now = database_clock.now(using)
    found, planned = definitions.fetch(using, ids), task_states.read(using, ids)
    since = plans.changes(using, found.values(), now)
    changed = _changed(using, ids)
    sent, killed = _sent(using, ids), _killed(using, ids)
    unsent = Counter(_open(using, ids).values_list("task_id", flat=True))
    tasks = []
    for key, one in found.items():
        task = Task(key, one.name, one.enabled, unsent=unsent[key])
        try:
            state = planned.get(key)
            after_all = planning.planned(one, state, since[key], now)
            last = one.last_run_at and _instant(one.last_run_at, state, now)
            runs, newest = sent.get(key, (0, None))
            history = _History(last, one.total_run_count, runs, newest, killed[key])
            task.columns = _columns(one, after_all, history, changed.get(key) or now, now, bool(unsent[key]))
            still = task.columns.get("enabled", one.enabled)
            task.differences = list(dcb_semantics.differences(one, after_all, now)) if still else []
            if still and key not in changed:
                task.differences.append(Difference(f"date_changed: it cannot be read: {dcb_semantics.STOPS}"))
        except (Unschedulable, ValidationError, TypeError, ValueError, ArithmeticError) as error:
            task.differences = [Difference(f"it cannot be read: {error}")] if one.enabled else []
        tasks.append(task)
    return tasks, ids[-1]


# -- run state --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _History:
    """What a task's row says of its runs, and what the ledger says."""

    last: datetime | None
    count: int
    in_ledger: int
    newest: datetime | None
    #: When a scheduler sent it that was killed since.
    killed: list[datetime]

    def counted(self) -> int:
        """The whole number of runs: those that a killed scheduler did not write come on top."""
        unwritten = sum(self.last is None or at > self.last for at in self.killed)
        return min(max(self.count + unwritten, self.in_ledger), _MANY)

    def ran(self) -> datetime | None:
        """The last run."""
        return max(filter(None, (self.last, self.newest)), default=None)


def _columns(
    one: Definition, after: State, history: _History, changed: datetime, now: datetime, unsent: bool
) -> dict[str, object]:
    """The columns of a task's row that are not as its beat must find them."""
    last, count, enabled = history.ran(), history.counted(), one.enabled
    due = after.due_at
    if one.one_off and enabled and not after.quarantine:
        if due is None and not unsent and (after.water_mark or count):
            enabled = False  # decided, whether it was sent or not: its beat would send what has passed
        else:
            count = 0  # a one-off that ran before and is to run again: its beat would disable it unrun
    if enabled and due is not None and due > now and one.clocked is None and not unsent:
        last = _decided(one, one.recurrence(after.anchor), due, last, changed, now)
    columns: dict[str, object] = {}
    if enabled != one.enabled:
        columns["enabled"] = enabled
    if count != one.total_run_count:
        columns["total_run_count"] = count
    if last is not None and (expected := to_their_run(last)) != one.last_run_at:
        columns["last_run_at"] = expected
    return columns


def _decided(
    one: Definition, recurrence: Recurrence, due: datetime, last: datetime | None, changed: datetime, now: datetime
) -> datetime | None:
    """`last`, or the last nominal time before `due` if its beat would send at once what has been decided here.

    Times that were skipped (paused, disabled, missed) leave no run behind, and its beat makes up for them.
    """
    if one.starts() and one.starts() > now:  # type: ignore[operator]
        return last
    theirs_next = dcb_semantics.next_run(one, recurrence, last, changed)
    if theirs_next is None or theirs_next > now:
        return last
    if one.interval is not None:
        return due - timedelta(**{str(one.period): one.every or 0})
    first = recurrence.after(last or changed)
    return now if first is None or first > now else rules.newest(recurrence, first, now)[0]


def _instant(value: datetime, state: State | None, now: datetime) -> datetime:
    """A `last_run_at` that either of us may have written: what would lie in the future to us is theirs."""
    ours = to_utc(value)
    return from_their_run(value) if state is None or ours > now else ours


def _changed(using: str, ids: list[int]) -> dict[int, datetime | None]:
    """`date_changed` of the tasks; one that cannot be read is left out."""
    rows = PeriodicTask._base_manager.using(using)
    try:
        found = rows.filter(pk__in=ids).values_list("pk", "date_changed")
        return {key: from_their_run(at) if at else None for key, at in found}
    except definitions.UNREADABLE:
        return _changed(using, ids[: len(ids) // 2]) | _changed(using, ids[len(ids) // 2 :]) if len(ids) > 1 else {}


def _sent(using: str, ids: list[int]) -> dict[int, tuple[int, datetime]]:
    """How often the ledger knows each task to have been sent, and when last."""
    rows = Occurrence.objects.using(using).filter(task_id__in=ids, sent_at__isnull=False).order_by()
    counted = rows.values("task_id").annotate(runs=Count("pk"), last=Max("sent_at"))
    return {row["task_id"]: (row["runs"], row["last"]) for row in counted}


def _killed(using: str, ids: list[int]) -> defaultdict[int, list[datetime]]:
    """When schedulers that were killed sent each task shortly before."""
    found: defaultdict[int, list[datetime]] = defaultdict(list)
    lost = Beat.objects.using(using).filter(stopped_at=None).values_list("pk", "seen_at")
    for beat, seen_at in lost:
        rows = Occurrence.objects.using(using).filter(task_id__in=ids, beat=beat, sent_at__gt=seen_at - _UNWRITTEN)
        for key, at in rows.values_list("task_id", "sent_at"):
            found[key] += [at] if at else []
    return found
