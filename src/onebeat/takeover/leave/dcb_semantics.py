"""What django-celery-beat 2.9 makes of a task that onebeat has run: whether it can run it, and what would be different.

Its own rules, seen by running it; nothing here decides anything in onebeat.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from onebeat.core.catchup import DEFAULT
from onebeat.core.planning import State
from onebeat.core.recurrence import Recurrence
from onebeat.core.recurrence.celery_dialect import read_taken_over
from onebeat.dispatch.celery import app
from onebeat.dispatch.celery.schedules import crontab_error
from onebeat.models.instants import from_their_run, to_utc
from onebeat.models.task_rules import JSON_FIELDS, SCHEDULES
from onebeat.store.definitions import Definition

#: How far back it dates the last run of a task with a `start_time` that never ran, so that it starts at once.
_LONG_AGO = timedelta(days=365 * 30)
STOPS = "its beat stops with an error"
_UNWRITTEN = "its runs cannot be written, on which its beat stops sooner or later"
_FAILS = "each run fails"
_DROPPED = "the task is left out without a word"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not the same there. `wrong`: the task must not be left to it as it is; else it runs at its
    times, and this is what it does without.
    """

    text: str
    wrong: bool = True


def differences(one: Definition, plan: State, now: datetime) -> Iterator[Difference]:
    """What django-celery-beat would do differently with this enabled task. `plan` is its plan as onebeat has it."""
    broken = _unrunnable(one)
    if broken:
        yield Difference(broken)
        return
    read = list(_crontab(one, plan)) if one.crontab is not None else []
    yield from read
    if plan.quarantine and not read:
        yield Difference(f"quarantined here ({plan.quarantine}); it runs there")
    if one.policy.paused_until is not None and one.policy.paused_until > now:
        yield Difference("paused here; it runs there")
    for name in ("clocked_time", "start_time", "expires"):
        value = getattr(one, name)
        if value is not None and to_utc(value) != from_their_run(value):
            yield Difference(f"{name}: without USE_TZ it takes {value} for UTC", wrong=name == "clocked_time")
    unknown = [each.name for each in fields(DEFAULT) if each.name != "paused_until"]
    asked = [name for name in unknown if getattr(one.policy, name) != getattr(DEFAULT, name)]
    if one.extra not in ("", "{}"):
        asked.append("extra message options")
    if asked:
        yield Difference(f"without its options: {', '.join(asked)}", wrong=False)
    if one.interval is not None and one.start_time is not None:
        yield Difference("its interval counts from the run before, not from start_time", wrong=False)


def _unrunnable(one: Definition) -> str:
    """Why its beat cannot run the task at all, and what becomes of the others; empty if it can."""
    if one.broken:
        return f"{one.broken}; {STOPS} or leaves the task out"
    kinds = [name for name in SCHEDULES if getattr(one, name) is not None]
    if not kinds:
        return f"it has no schedule: {STOPS}"
    if len(kinds) > 1:
        return f"it has several schedules: it runs on its {kinds[0]}; {_UNWRITTEN}"
    if one.clocked is not None and not one.one_off:
        return f"a clocked task that is not one-off: it runs; {_UNWRITTEN}"
    if one.interval is not None:
        try:
            period = timedelta(**{str(one.period): one.every or 0})
        except (TypeError, OverflowError) as error:
            return f"interval: {error}: {STOPS}"
        if period <= timedelta(0):
            return "interval: it is sent without a pause"
    for name, kind in JSON_FIELDS.items():
        if what := _json(name, getattr(one, name), kind):
            return what
    return ""


def _json(name: str, text: Any, kind: type) -> str:
    try:
        value = json.loads(text or ("[]" if kind is list else "{}"))
    except (ValueError, TypeError, RecursionError):
        return f"{name}: not JSON: " + (_DROPPED if name == "headers" else "its beat disables the task")
    if isinstance(value, kind):
        return ""
    return f"{name}: not a JSON {'list' if kind is list else 'object'}: " + (STOPS if name == "headers" else _FAILS)


def _crontab(one: Definition, plan: State) -> Iterator[Difference]:
    minute, hour, day_of_month, month_of_year, day_of_week = map(str, one.cron[:5])
    text = " ".join(map(str, one.cron[:5]))
    error = crontab_error(minute, hour, day_of_month, month_of_year, day_of_week)
    if error is not None:
        yield Difference(f"crontab {text}: {_DROPPED if isinstance(error, ValueError) else STOPS}")
        return
    zone = app.timezone()
    if not getattr(settings, "DJANGO_CELERY_BEAT_TZ_AWARE", True) and str(zone) != str(one.cron[5]):
        yield Difference(f"crontab {text}: without DJANGO_CELERY_BEAT_TZ_AWARE its zone is {zone}, not {one.cron[5]}")
    reading = read_taken_over(minute, hour, day_of_month, month_of_year, day_of_week, one.cron[5])
    if reading.cron is None:
        yield Difference(f"crontab {text}: it never runs")
    elif reading.verdict != "kept" and (plan.quarantine or reading.cron != one.recurrence(plan.anchor)):
        yield Difference(f"crontab {text}: {reading.why.replace('has been read', 'is read')}")


def next_run(one: Definition, recurrence: Recurrence, last: datetime | None, changed: datetime) -> datetime | None:
    """When it would send a task next that it thinks has run at `last`; `changed` is the row's `date_changed`."""
    if last is None:
        last = changed - _LONG_AGO if one.start_time is not None else changed
    if one.interval is not None:
        return last + timedelta(**{str(one.period): one.every or 0})
    return recurrence.after(last)
