"""A look at the engine's tables for people and monitors."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import CharField, ExpressionWrapper, F

from onebeat.conf import current
from onebeat.db import database_clock
from onebeat.models import Beat, CeleryReading, Change, PeriodicTask, TaskState
from onebeat.store import other_beat
from onebeat.store.scheduler_rows import CLASSIC

#: How many rows of a kind are named, and how many crontabs are looked at for them.
_NAMED, _LOOKED_AT = 20, 1000
_DISABLED = "disabled_at_takeover"
#: A crontab's value; the zone as it is written, which need not be one.
_CRONTAB: tuple[Any, ...] = (
    *("crontab__minute", "crontab__hour", "crontab__day_of_month", "crontab__month_of_year", "crontab__day_of_week"),
    ExpressionWrapper(F("crontab__timezone"), CharField()),
)


def status(using: str) -> dict[str, Any]:
    """Schedulers at work, tasks that wait, the lag of the oldest due one, and what is quarantined. Instants are UTC."""
    now = database_clock.now(using)
    states = TaskState.objects.using(using)
    oldest = states.filter(wake_at__lte=now).order_by("wake_at").values_list("wake_at", flat=True).first()
    upcoming = states.filter(wake_at__gt=now).order_by("wake_at").values_list("wake_at", flat=True).first()
    # Two columns of the task, not the row: what is quarantined may be unreadable.
    quarantined = states.filter(quarantine__gt="").order_by("pk").values_list("pk", "task__name", "quarantine")[:_NAMED]
    return {
        "now": _text(now),
        "schedulers": [
            {
                "host": beat.host,
                "pid": beat.pid,
                "version": beat.version,
                "started_at": _text(beat.started_at),
                "seen_at": _text(beat.seen_at),
                "classic": beat.version.endswith(CLASSIC),
                "alive": (now - beat.seen_at).total_seconds() < current().away_seconds,
                "able": beat.able_since is not None,
                "lag_ms": beat.lag_ms,
                "skew_ms": beat.skew_ms,
            }
            for beat in Beat.objects.using(using).filter(stopped_at=None).order_by("-seen_at")[:20]
        ],
        "other_beat": other_beat.at_work(using, now),
        "waiting": states.filter(wake_at__isnull=False).count(),
        "due": states.filter(wake_at__lte=now).count(),
        "lag_seconds": max(0.0, (now - oldest).total_seconds()) if oldest else 0.0,
        "next_wake_at": _text(upcoming),
        "unplanned_changes": Change.objects.using(using).count(),
        "quarantined": [{"id": key, "name": name, "reason": reason} for key, name, reason in quarantined],
        _DISABLED: _disabled_at_takeover(using),
    }


def _disabled_at_takeover(using: str) -> list[dict[str, Any]]:
    """Tasks that are disabled because Celery could not read their crontab, so that they ran for nobody before either.
    One that is edited, deleted or enabled since is not among them.
    """
    rows = CeleryReading._base_manager.using(using).filter(meaning="").order_by("pk")[:_LOOKED_AT]
    why = {row.pk: row for row in rows}
    tasks = PeriodicTask._base_manager.using(using).filter(enabled=False, crontab_id__in=list(why)).order_by("pk")
    found = tasks.values_list("pk", "name", "crontab", *_CRONTAB)
    return [
        {"id": pk, "name": name, "reason": why[crontab].why}
        for pk, name, crontab, *value in found
        if " ".join(map(str, value)) == why[crontab].text
    ][:_NAMED]


def lines(found: dict[str, Any]) -> list[str]:
    """The same for a person."""
    alive = [one for one in found["schedulers"] if one["alive"]]
    out = [f"{len(alive)} scheduler{'' if len(alive) == 1 else 's'} at work"]
    for one in found["schedulers"]:
        able = "in classic mode" if one["classic"] else "able to send" if one["able"] else "its broker is away"
        state = able if one["alive"] else "not seen lately"
        out.append(f"  {one['host']}:{one['pid']}  {state}, seen {one['seen_at']}, clock {one['skew_ms']:+d} ms")
    if found["other_beat"]:
        out.append(f"HELD: {found['other_beat']} sends the same tasks; stop it, and onebeat goes on by itself")
    out.append(
        f"{found['waiting']} tasks wait, {found['due']} of them due, the oldest {found['lag_seconds']:.1f} s late"
    )
    if found["next_wake_at"]:
        out.append(f"next at {found['next_wake_at']}")
    out += [f"disabled at the take-over: {one['name']} ({one['id']}): {one['reason']}" for one in found[_DISABLED]]
    out += [f"quarantined: {one['name']} ({one['id']}): {one['reason']}" for one in found["quarantined"]]
    return out


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()
