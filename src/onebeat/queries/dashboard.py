"""What a person wants to know first: who is at work, what is overdue, quarantined, or unknown to anybody."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count

from onebeat.conf import current
from onebeat.db import database_clock
from onebeat.models import Beat, PeriodicTask, TaskState

#: How many rows of a kind are named; of more, the page says so.
NAMED = 20
#: Counting stops here.
COUNTED = 10_000
#: A scheduler that stopped or was lost is shown for this long.
_REMEMBERED = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Scheduler:
    """One scheduler process: its row, and "able" (to send), "starting", "away", "stopped" or one of `Beat.Unable`."""

    row: Beat
    state: str


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The page. Each list is cut at `NAMED`, each count at `COUNTED` + 1."""

    now: datetime
    schedulers: list[Scheduler]
    waiting: int
    overdue: list[dict[str, Any]]
    overdue_count: int
    quarantined: list[dict[str, object]]
    quarantined_count: int
    unknown: list[dict[str, object]]

    @property
    def at_work(self) -> int:
        """How many schedulers are at work, whether or not they can send."""
        return sum(one.state not in ("away", "stopped") for one in self.schedulers)


def dashboard(using: str, known: Collection[str]) -> Dashboard:
    """Everything that the overview page shows. `known`: the names of tasks that the app has registered."""
    now = database_clock.now(using)
    states = TaskState.objects.using(using)
    # Due a poll ago and still here: a scheduler at work would have taken it.
    late = states.filter(wake_at__lt=now - timedelta(seconds=2 * current().poll_interval)).order_by("wake_at")
    quarantined = states.filter(quarantine__gt="")
    fields = ("task_id", "task__name")
    return Dashboard(
        now=now,
        schedulers=[Scheduler(beat, _state(beat, now)) for beat in _schedulers(using, now)],
        waiting=_count(states.filter(wake_at__isnull=False)),
        overdue=list(late.values(*fields, "due_at")[:NAMED]),
        overdue_count=_count(late),
        quarantined=list(quarantined.order_by("pk").values(*fields, "quarantine")[:NAMED]),
        quarantined_count=_count(quarantined),
        unknown=_unknown(using, known),
    )


def _count(rows: Any) -> int:
    return int(rows.order_by()[: COUNTED + 1].count())


def _schedulers(using: str, now: datetime) -> list[Beat]:
    rows = Beat.objects.using(using).filter(seen_at__gt=now - _REMEMBERED)
    return list(rows.order_by("stopped_at", "-seen_at")[:NAMED])


def _state(beat: Beat, now: datetime) -> str:
    if beat.stopped_at is not None:
        return "stopped"
    if now - beat.seen_at > timedelta(seconds=current().away_seconds):
        return "away"
    return "able" if beat.able_since is not None else beat.unable_reason or "starting"


def _unknown(using: str, known: Collection[str]) -> list[dict[str, object]]:
    """The names of enabled tasks that are not registered, with how many tasks bear each."""
    rows = PeriodicTask._base_manager.using(using).filter(enabled=True).order_by().values("task")
    found: list[dict[str, Any]] = [dict(row) for row in rows.annotate(tasks=Count("pk")) if row["task"] not in known]
    return sorted(found, key=lambda row: (-row["tasks"], row["task"]))[:NAMED]
