"""What the schedulers are doing and which tasks wait, from the engine's tables."""

from __future__ import annotations

from typing import TypedDict

from django.db.models import CharField, ExpressionWrapper, F

from onebeat.conf import current
from onebeat.core.text import iso
from onebeat.db import database_clock
from onebeat.models import Beat, CeleryReading, Change, PeriodicTask, TaskState
from onebeat.store import other_beat

#: How many rows of a kind are named, and how many crontabs are looked at for them.
_NAMED, _LOOKED_AT = 20, 1000
#: A crontab's value; the zone as it is written, which need not be one.
_CRONTAB = (
    *("crontab__minute", "crontab__hour", "crontab__day_of_month", "crontab__month_of_year", "crontab__day_of_week"),
    ExpressionWrapper(F("crontab__timezone"), CharField()),
)


class SchedulerStatus(TypedDict):
    """One scheduler process that has not said that it stopped. `unable_reason` is one of `Beat.Unable`, or empty."""

    host: str
    pid: int
    version: str
    started_at: str
    seen_at: str
    alive: bool
    able: bool
    unable_reason: str
    lag_ms: int
    skew_ms: int


class TaskReason(TypedDict):
    """A task, and why it does not run."""

    id: int
    name: str
    reason: str


class Status(TypedDict):
    """What the schedulers are doing, ready to be written as JSON. Instants are ISO 8601 in UTC."""

    now: str
    schedulers: list[SchedulerStatus]
    #: What other beat sends the same tasks; empty if none is known.
    other_beat: str
    waiting: int
    due: int
    lag_seconds: float
    next_wake_at: str | None
    unplanned_changes: int
    quarantined: list[TaskReason]
    disabled_at_takeover: list[TaskReason]


def status(using: str) -> Status:
    """Schedulers at work, tasks that wait, the lag of the oldest due one, and what is quarantined."""
    now = database_clock.now(using)
    states = TaskState.objects.using(using)
    oldest = states.filter(wake_at__lte=now).order_by("wake_at").values_list("wake_at", flat=True).first()
    upcoming = states.filter(wake_at__gt=now).order_by("wake_at").values_list("wake_at", flat=True).first()
    # Two columns of the task, not the row: what is quarantined may be unreadable.
    quarantined = states.filter(quarantine__gt="").order_by("pk").values_list("pk", "task__name", "quarantine")[:_NAMED]
    return {
        "now": iso(now),
        "schedulers": [
            {
                "host": beat.host,
                "pid": beat.pid,
                "version": beat.version,
                "started_at": iso(beat.started_at),
                "seen_at": iso(beat.seen_at),
                "alive": (now - beat.seen_at).total_seconds() < current().away_seconds,
                "able": beat.able_since is not None,
                "unable_reason": beat.unable_reason,
                "lag_ms": beat.lag_ms,
                "skew_ms": beat.skew_ms,
            }
            for beat in Beat.objects.using(using).filter(stopped_at=None).order_by("-seen_at")[:20]
        ],
        "other_beat": other_beat.at_work(using, now),
        "waiting": states.filter(wake_at__isnull=False).count(),
        "due": states.filter(wake_at__lte=now).count(),
        "lag_seconds": max(0.0, (now - oldest).total_seconds()) if oldest else 0.0,
        "next_wake_at": iso(upcoming),
        "unplanned_changes": Change.objects.using(using).count(),
        "quarantined": [{"id": key, "name": name, "reason": reason} for key, name, reason in quarantined],
        "disabled_at_takeover": _disabled_at_takeover(using),
    }


def _disabled_at_takeover(using: str) -> list[TaskReason]:
    """Tasks that are disabled because Celery could not read their crontab, so that they ran for nobody before either.
    One that is edited, deleted or enabled since is not among them.
    """
    rows = CeleryReading._base_manager.using(using).filter(meaning="").order_by("pk")[:_LOOKED_AT]
    why = {row.pk: row for row in rows}
    tasks = PeriodicTask._base_manager.using(using).filter(enabled=False, crontab_id__in=list(why)).order_by("pk")
    found = tasks.values_list("pk", "name", "crontab", *_CRONTAB)
    return [
        TaskReason(id=pk, name=name, reason=why[crontab].why)
        for pk, name, crontab, *value in found
        if " ".join(map(str, value)) == why[crontab].text
    ][:_NAMED]
