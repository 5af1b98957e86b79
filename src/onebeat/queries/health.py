"""Whether what is due is being sent: figures and codes for probes and alerts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TypedDict

from django.db.models import Sum

from onebeat.conf import current
from onebeat.core.text import all_paused, iso
from onebeat.db import database_clock
from onebeat.models import Beat, TaskState
from onebeat.store import global_pause, outages
from onebeat.store.events import SENT

#: The counts of a scheduler that has stopped are kept in the answer for this long, so that a collector still gets them.
_REMEMBERED = timedelta(hours=1)

#: Problems beside those of `Beat.Unable`: no scheduler is at work; none has reported yet whether it can send; the
#: oldest due task is later than `late_seconds`.
NO_SCHEDULER, STARTING, LATE = "no_scheduler", "starting", "late"
#: While another beat sends, what is due is not late: its rows here do not move.
_OTHERS_SEND = {Beat.Unable.STANDBY, Beat.Unable.CLASSIC}


class Health(TypedDict):
    """The figures to alert on, ready to be written as JSON. Instants are ISO 8601 in UTC."""

    healthy: bool
    #: A code for each thing that is wrong: one of `Beat.Unable`, or of the three above.
    problems: list[str]
    now: str
    #: How many schedulers are at work, and how many of them are able to send.
    schedulers: int
    able: int
    #: When some scheduler was able to send last, if none is.
    able_until: str | None
    lag_seconds: float
    due: int
    quarantined: int
    failed_publishes: int
    largest_skew_ms: int
    #: By whom everything is paused, and why; empty if it is not.
    paused: str


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


def health(using: str) -> Health:
    """The health of all schedulers on this database.

    Healthy means: a scheduler is able to send, and the oldest due task is not later than `late_seconds`. A quarantined
    task or a message that was refused stops nothing else, so they are counted and do not make the answer unhealthy.
    """
    now, settings = database_clock.now(using), current()
    schedulers = Beat.objects.using(using).filter(
        seen_at__gt=now - timedelta(seconds=settings.away_seconds), stopped_at=None
    )
    states = TaskState.objects.using(using)
    oldest = states.filter(wake_at__lte=now).order_by("wake_at").values_list("wake_at", flat=True).first()
    lag = max(timedelta(0), now - oldest) if oldest else timedelta(0)
    alive = list(schedulers.values_list("able_since", "skew_ms", "unable_reason"))
    able = sum(since is not None for since, _, _ in alive)
    reasons = sorted({reason or STARTING for _, _, reason in alive}) or [NO_SCHEDULER]
    problems = [] if able else reasons
    if lag > timedelta(seconds=settings.late_seconds) and (able or not _OTHERS_SEND.issuperset(reasons)):
        problems = [*problems, LATE]
    pause = global_pause.global_pause(using, now)
    return {
        "healthy": not problems,
        "problems": problems,
        "now": iso(now),
        "schedulers": len(alive),
        "able": able,
        "able_until": None if able else iso(outages.able_until(using)),
        "lag_seconds": lag.total_seconds(),
        "due": states.filter(wake_at__lte=now).count(),
        "quarantined": states.filter(quarantine__gt="").count(),
        "failed_publishes": schedulers.aggregate(sum=Sum("failed"))["sum"] or 0,
        "largest_skew_ms": max((abs(skew) for _, skew, _ in alive), default=0),
        "paused": all_paused(pause.by, pause.why) if pause else "",
    }


def counters(using: str) -> list[Counters]:
    """What each scheduler has done since it started, of those that have been at work in the last hour."""
    rows = Beat.objects.using(using).filter(seen_at__gt=database_clock.now(using) - _REMEMBERED).order_by("pk")
    found = []
    for pk, host, pid, failed, tally in rows.values_list("pk", "host", "pid", "failed", "tally"):
        skipped = dict(json.loads(tally))
        found.append(Counters(f"{host}:{pid}:{pk}", skipped.pop(SENT, 0), failed, skipped))
    return found
