"""The global pause: nothing at all is sent, whatever each task says. One row, read by every claim."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from onebeat.db import database_clock
from onebeat.db.reads import prepared
from onebeat.errors import InvalidArgument
from onebeat.models import Fact

_FACT = "pause"


@dataclass(frozen=True, slots=True)
class Pause:
    """Everything is paused, since when, until when (None: until somebody resumes), by whom and why."""

    since: datetime
    until: datetime | None
    by: str = ""
    why: str = ""


def pause_all(using: str, *, by: str = "", why: str = "", until: datetime | None = None) -> Pause:
    """Send nothing from now on, until `until` (aware) or until `resume_all`. Replaces an earlier global pause.

    Each nominal time that passes is recorded as skipped with the reason "paused", by whom and why. Raises
    InvalidArgument for a naive `until`.
    """
    if until is not None and until.tzinfo is None:
        raise InvalidArgument(f"until: an aware instant is needed, not {until!r}")
    pause = Pause(database_clock.now(using), None if until is None else until.astimezone(UTC), by, why)
    value = {"since": pause.since.isoformat(), "until": until and until.isoformat(), "by": by, "why": why}
    Fact.objects.using(using).update_or_create(name=_FACT, defaults={"value": json.dumps(value)})
    return pause


def resume_all(using: str) -> bool:
    """End the global pause. Returns whether there was one."""
    return bool(Fact.objects.using(using).filter(name=_FACT).delete()[0])


def global_pause(using: str, now: datetime) -> Pause | None:
    """The global pause in force at `now`, or None."""
    rows = Fact.objects.using(using).filter(name=_FACT).values_list("value")
    value = next(iter(prepared(using, "pause", [_FACT], lambda: rows)), None)
    if value is None:
        return None
    found = json.loads(value[0])
    until = found["until"] and datetime.fromisoformat(found["until"]).astimezone(UTC)
    if until is not None and until <= now:
        return None
    return Pause(datetime.fromisoformat(found["since"]), until or None, found["by"], found["why"])
