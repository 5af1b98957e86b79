"""A look at the engine's tables for people and monitors."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from onebeat.conf import current
from onebeat.models import Beat, Change, TaskState
from onebeat.store import rivals, vendors
from onebeat.store.beats import CLASSIC


def status(using: str) -> dict[str, Any]:
    """Schedulers at work, tasks that wait, the lag of the oldest due one, and what is quarantined. Instants are UTC."""
    now = vendors.now(using)
    states = TaskState.objects.using(using)
    oldest = states.filter(wake_at__lte=now).order_by("wake_at").values_list("wake_at", flat=True).first()
    upcoming = states.filter(wake_at__gt=now).order_by("wake_at").values_list("wake_at", flat=True).first()
    # Two columns of the task, not the row: what is quarantined may be unreadable.
    quarantined = states.exclude(quarantine="").order_by("pk").values_list("pk", "task__name", "quarantine")[:20]
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
        "other_beat": rivals.at_work(using, now),
        "waiting": states.filter(wake_at__isnull=False).count(),
        "due": states.filter(wake_at__lte=now).count(),
        "lag_seconds": max(0.0, (now - oldest).total_seconds()) if oldest else 0.0,
        "next_wake_at": _text(upcoming),
        "unplanned_changes": Change.objects.using(using).count(),
        "quarantined": [{"id": key, "name": name, "reason": reason} for key, name, reason in quarantined],
    }


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
    out += [f"quarantined: {one['name']} ({one['id']}): {one['reason']}" for one in found["quarantined"]]
    return out


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()
