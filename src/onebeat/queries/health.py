"""Whether what is due is being sent: for probes, alerts and people in a hurry."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Sum

from onebeat.conf import current
from onebeat.db import database_clock
from onebeat.models import Beat, TaskState
from onebeat.queries.verdicts import iso, shown, span
from onebeat.store import global_pause, outages
from onebeat.store.counters import SENT

#: For so long the counts of a scheduler that has stopped are told: whoever collects them comes by in that time.
_REMEMBERED = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Counters:
    """What one scheduler process has done since it started."""

    #: host:pid:key, one of its own for each process.
    scheduler: str
    sent: int
    #: Messages that could not be handed over, each try counted.
    failed: int
    #: By reason. A range of times that was skipped as one counts as one.
    skipped: dict[str, int]


def health(using: str) -> dict[str, Any]:
    """`healthy`, `problems` (a line each), and the figures to alert on. Ready to be written as JSON.

    Healthy means: a scheduler is able to send, and the oldest due task is not later than `late_seconds`. A quarantined
    task or a message that was refused stops nothing else, so they are figures and no problem of the whole.
    """
    now, settings = database_clock.now(using), current()
    beats = Beat.objects.using(using).filter(
        seen_at__gt=now - timedelta(seconds=settings.away_seconds), stopped_at=None
    )
    states = TaskState.objects.using(using)
    oldest = states.filter(wake_at__lte=now).order_by("wake_at").values_list("wake_at", flat=True).first()
    lag = max(timedelta(0), now - oldest) if oldest else timedelta(0)
    alive = list(beats.values_list("able_since", "skew_ms"))
    able = [since for since, _ in alive if since is not None]
    pause = global_pause.global_pause(using, now)
    problems = []
    if not alive:
        problems.append("no scheduler is at work")
    elif not able:
        problems.append("the broker does not answer")
    if problems and (last := outages.able_until(using)) is not None:
        problems[-1] += f", nothing has been sent since {shown(last)}"
    if lag > timedelta(seconds=settings.late_seconds):
        problems.append(f"the oldest due task is {span(lag)} late")
    return {
        "healthy": not problems,
        "problems": problems,
        "now": iso(now),
        "schedulers": len(alive),
        "able": len(able),
        "lag_seconds": lag.total_seconds(),
        "due": states.filter(wake_at__lte=now).count(),
        "quarantined": states.filter(quarantine__gt="").count(),
        "failed_publishes": beats.aggregate(sum=Sum("failed"))["sum"] or 0,
        "largest_skew_ms": max((abs(skew) for _, skew in alive), default=0),
        "paused": pause.words() if pause else "",
    }


def counters(using: str) -> list[Counters]:
    """What each scheduler has done since it started, of those that have been at work in the last hour."""
    rows = Beat.objects.using(using).filter(seen_at__gt=database_clock.now(using) - _REMEMBERED).order_by("pk")
    found = []
    for pk, host, pid, failed, tally in rows.values_list("pk", "host", "pid", "failed", "tally"):
        skipped = dict(json.loads(tally))
        found.append(Counters(f"{host}:{pid}:{pk}", skipped.pop(SENT, 0), failed, skipped))
    return found


def lines(found: dict[str, Any]) -> list[str]:
    """The same for a person."""
    return [
        "healthy" if found["healthy"] else "not healthy",
        f"{found['schedulers']} schedulers at work, {found['able']} of them able to send",
        f"{found['due']} tasks due, the oldest {found['lag_seconds']:.1f} s late",
        f"{found['quarantined']} tasks quarantined, {found['failed_publishes']} publishes failed",
        f"clocks differ from the database's by {found['largest_skew_ms']} ms at most",
        *([found["paused"]] if found["paused"] else []),
    ]
