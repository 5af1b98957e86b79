"""Retention: what is decided and old is deleted, in small pieces and oldest first.

The once-only promise does not rest on the rows that go: each task's water mark stays, and the horizon up to which
records may be gone is written before the first of them goes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce, Greatest

from onebeat.conf import Settings
from onebeat.core.reasons import Reason
from onebeat.db import transactions
from onebeat.models import (
    Action,
    Beat,
    CeleryReading,
    ClockedSchedule,
    CrontabSchedule,
    Declared,
    Fact,
    Occurrence,
    Outage,
    PeriodicTask,
)
from onebeat.models.instants import from_utc
from onebeat.store import task_states

logger = logging.getLogger("onebeat")

#: How long the row of a scheduler that has gone is kept, for people who ask what happened.
_GONE = timedelta(days=7)
#: Tasks are deleted one by one, with what belongs to them: each is the work of so many occurrences.
_WORTH = 100
#: How many rows of the smaller tables are deleted in one piece.
_MOST = 1000
#: What `once` writes into the options of the tasks that it makes.
_ORIGIN = "once"
_SHORT = (Occurrence.State.SENT, Occurrence.State.STARTED, Occurrence.State.SUCCEEDED)
_LONG = (Occurrence.State.FAILED, Occurrence.State.SKIPPED)


@dataclass(frozen=True, slots=True)
class Keep:
    """Before which instants records go; None: they stay. `sent` counts for what went well, `failed` for the rest."""

    now: datetime
    sent: datetime | None
    failed: datetime | None

    @classmethod
    def of(cls, settings: Settings, now: datetime) -> Keep:
        """As the settings say; a time of 0 days keeps for ever."""
        days = settings.keep_days, settings.keep_failed_days
        return cls(now, *(now - timedelta(days=each) if each else None for each in days))

    def horizon(self) -> datetime | None:
        """Records of nominal times before this may go; None: none may."""
        return max((each for each in (self.sent, self.failed) if each), default=None)

    def old(self) -> Q:
        """Occurrences that may go: decided before the horizon, and of nominal times before it."""
        found = Q(pk__in=[])
        for before, kinds in (self.sent, _SHORT), (self.failed, _LONG):
            if before is not None:
                found |= Q(state__in=kinds, decided_at__lt=before, onebeat_last__lt=before)
        return found


def occurrences(using: str, keep: Keep, after: int, size: int) -> tuple[int | None, int]:
    """Look at the `size` occurrences that follow the key `after`, and delete those that may go.

    Returns where to go on, None at the end, and how many were deleted. Keys grow as time goes: a slice that is wholly
    younger than the horizon is the end.
    """
    before = keep.horizon()
    if before is None:
        return None, 0
    move_horizon(using, before)
    rows = Occurrence.objects.using(using).filter(pk__gt=after).order_by("pk")[:size]
    found = rows.aggregate(last=Max("pk"), oldest=Min("decided_at"), number=Count("pk"))
    if found["oldest"] is None or found["oldest"] >= before:
        return None, 0
    # One statement, which looks at each row under its lock: one that was skipped may have been claimed just now.
    gone = _old(using, keep).filter(pk__gt=after, pk__lte=found["last"]).delete()[0]
    return (found["last"] if found["number"] == size else None), gone


def _old(using: str, keep: Keep) -> QuerySet[Occurrence, Any]:
    last = Greatest("due_at", Coalesce("last_due_at", "due_at"))
    return Occurrence.objects.using(using).alias(onebeat_last=last).filter(keep.old())


def _once(using: str, keep: Keep) -> QuerySet[PeriodicTask, Any]:
    """One-offs that `once` made and that have run or were taken back; what a person made stays."""
    rows: QuerySet[PeriodicTask, Any] = PeriodicTask._base_manager.using(using)
    if keep.sent is None:
        return rows.none()
    recorded = Occurrence.objects.using(using).filter(task_id=OuterRef("pk"), run=0, reason=Reason.CANCELLED)
    cancelled = Exists(recorded.filter(decided_at__lt=keep.sent))
    # One that was taken back before its time has no water mark.
    over = Q(onebeat_state__water_mark__lt=keep.sent) | Q(onebeat_state__water_mark=None) & Q(
        Q(clocked__clocked_time__lt=from_utc(keep.sent)) | cancelled
    )
    ended = rows.filter(one_off=True, enabled=False, onebeat_options__origin=_ORIGIN)
    return ended.filter(over, onebeat_state__due_at=None, onebeat_state__quarantine="")


def finished_tasks(using: str, keep: Keep, size: int) -> int:
    """Delete some of the finished one-offs whose run is older than what is kept, in a piece that takes as long as one
    of `size` occurrences. Returns how many.
    """
    with transactions.short_transaction(using):
        ids = list(_once(using, keep).order_by("pk").values_list("pk", flat=True)[: max(1, size // _WORTH)])
        free = PeriodicTask._base_manager.using(using).filter(pk__in=ids).select_for_update(skip_locked=True)
        locked = set(free.values_list("pk", flat=True))
        # Looked at again under the lock: somebody may have given one of them another time.
        tasks = list(_once(using, keep).filter(pk__in=locked))
        clocks = {task.clocked_id for task in tasks if task.clocked_id is not None}
        task_states.delete(using, [task.pk for task in tasks])
        for task in tasks:
            task.delete(using=using)
    if keep.sent is not None and clocks:
        _unused(using, clocks, keep.sent)
    return len(tasks)


def _unused(using: str, clocks: set[int], before: datetime) -> None:
    """Delete the instants that nothing runs at any more; nobody makes a task for one that lies so far back."""
    rows = ClockedSchedule._base_manager.using(using).filter(pk__in=clocks, clocked_time__lt=from_utc(before))
    for row in rows.filter(periodictask=None):
        try:
            with transactions.short_transaction(using):
                row.delete(using=using)
        except IntegrityError as error:
            logger.debug("clocked schedule %s stays: %s", row.pk, error)


def rest(using: str, keep: Keep) -> dict[str, int]:
    """Delete what else is old, by kind: schedulers long gone, outages, actions, declarations of tasks that left the
    code and are gone, readings of crontabs that are gone. At most `_MOST` rows of each; returns how many.
    """
    done = {}
    for name, rows in _rest(using, keep).items():
        ids = list(rows.order_by("pk").values_list("pk", flat=True)[:_MOST])
        done[name] = rows.model._base_manager.using(using).filter(pk__in=ids).delete()[0] if ids else 0
    return done


def _rest(using: str, keep: Keep) -> dict[str, QuerySet[Any, Any]]:
    beats = Beat.objects.using(using)
    # The newest stays, however old: where the next outage began is written in it.
    newest = beats.exclude(able_until=None).order_by("-able_until").values_list("pk", flat=True).first()
    found: dict[str, QuerySet[Any, Any]] = {
        "schedulers": beats.filter(seen_at__lt=keep.now - _GONE).exclude(pk=newest or 0)
    }
    if keep.failed is not None:
        tasks = PeriodicTask._base_manager.using(using).filter(pk=OuterRef("task"))
        crontabs = CrontabSchedule._base_manager.using(using).filter(pk=OuterRef("crontab"))
        found |= {
            "outages": Outage.objects.using(using).filter(ended_at__lt=keep.failed),
            "actions": Action.objects.using(using).filter(at__lt=keep.failed),
            "declarations": Declared.objects.using(using).filter(~Exists(tasks), removed_at__lt=keep.failed),
            "readings": CeleryReading._base_manager.using(using).filter(~Exists(crontabs)),
        }
    return found


def count(using: str, keep: Keep) -> dict[str, int]:
    """How many rows of each kind a whole pass would delete now."""
    return {
        "occurrences": _old(using, keep).count(),
        "tasks": _once(using, keep).count(),
        **{name: rows.count() for name, rows in _rest(using, keep).items()},
    }


def whole(using: str, keep: Keep, size: int) -> Iterator[dict[str, int]]:
    """A whole pass. Gives the sums so far after each piece."""
    sums = {"occurrences": 0, "tasks": 0}
    after: int | None = 0
    while after is not None:
        after, gone = occurrences(using, keep, after, size)
        sums["occurrences"] += gone
        yield dict(sums)
    while gone := finished_tasks(using, keep, size):
        sums["tasks"] += gone
        yield dict(sums)
    while any((gone_now := rest(using, keep)).values()):
        sums = {**sums, **{name: sums.get(name, 0) + number for name, number in gone_now.items()}}
        yield dict(sums)
    yield {**gone_now, **sums}


_FACT = "pruned"
#: It moves in steps, so that it is not written for each piece of the work.
_STEP = timedelta(hours=1)


def pruned_before(using: str) -> datetime | None:
    """Records of nominal times before this may be gone; None when nothing has been pruned yet."""
    value = Fact.objects.using(using).filter(name=_FACT).values_list("value", flat=True).first()
    return None if value is None else datetime.fromisoformat(value)


def move_horizon(using: str, instant: datetime) -> None:
    """Say that records before `instant` may be gone, before the first of them is deleted. It only moves on."""
    known = pruned_before(using)
    if known is None or instant > known:
        value = (instant + _STEP).isoformat()
        Fact.objects.using(using).update_or_create(name=_FACT, defaults={"value": value})
