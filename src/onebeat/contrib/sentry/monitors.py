"""A task's schedule as a monitor of Sentry Crons, in the form that its server reads."""

from __future__ import annotations

import logging
import math
from datetime import timedelta

from celery import Celery
from sentry_sdk.crons.utils import _get_interval_schedule
from sentry_sdk.utils import match_regex_list

from onebeat.conf import current
from onebeat.contrib.sentry.outbox import Values
from onebeat.core.message_request import MONITOR
from onebeat.core.recurrence import EPOCH, Cron, Recurrence
from onebeat.core.recurrence.fields import KINDS, LAST, read
from onebeat.core.recurrence.interval import Interval
from onebeat.errors import OnebeatError
from onebeat.store.definitions import Definition

logger = logging.getLogger("onebeat")

_MINUTE = timedelta(minutes=1)
#: The tasks without a monitor that were logged, at most so many: names of follow-ups have no end.
_logged: set[str] = set()
_MOST_LOGGED = 1000
_ONCE = "it runs once"


def config(task: Definition, app: Celery, excluded: list[str] | None) -> Values | None:
    """What Sentry gets to know of a task; None for one that is excluded by name, and for one that Sentry cannot watch,
    which is logged once.
    """
    if match_regex_list(task.name, excluded):
        return None
    found = _schedule(task)
    if isinstance(found, str):
        _log_once(task.name, found)
        return None
    options = task.more_options()
    given: Values = options.get(MONITOR) or {}
    late = task.policy.jitter + (task.policy.grace or timedelta(seconds=current().late_seconds))
    registered = app.tasks.get(task.task)
    limits = (options.get("time_limit"), getattr(registered, "time_limit", None), app.conf.task_time_limit)
    limit = next((one for one in limits if one), None)
    made = {**found, **given, "checkin_margin": max(given.get("checkin_margin", 1), math.ceil(late / _MINUTE))}
    if limit is not None and "max_runtime" not in given:
        made["max_runtime"] = max(1, math.ceil(limit / 60))
    return made


def _log_once(name: str, why: str) -> None:
    """One line for each task, and one for all that run once."""
    name = "" if why == _ONCE else name
    if name in _logged or len(_logged) >= _MOST_LOGGED:
        return
    _logged.add(name)
    if name:
        logger.warning("task %r has no monitor at Sentry: %s", name, why)
    else:
        logger.info("tasks that run once have no monitor at Sentry")


def _schedule(task: Definition) -> Values | str:
    """The schedule and its zone, or why there is none."""
    if task.clocked is not None or task.one_off:
        return _ONCE
    try:
        return of_rule(task.recurrence(EPOCH))
    except OnebeatError as error:
        return str(error)


def of_rule(rule: Recurrence) -> Values | str:
    """A rule as Sentry's server reads it, with its zone; or why it cannot."""
    if isinstance(rule, Cron):
        texts = [_field(name, getattr(rule, name)) for name in KINDS]
        if not any(texts[at].startswith("*") for at in (2, 4)):
            return "its server would run it on each of the days of the month and on each of the weekdays"
        return {"schedule": {"type": "crontab", "value": " ".join(texts)}, "timezone": rule.tz.key}
    if not isinstance(rule, Interval):
        return "its server knows crontabs and intervals only"
    seconds = rule.period.total_seconds()
    if seconds < 60:
        return "its interval is under a minute"
    interval = _get_interval_schedule(seconds)
    return {"schedule": interval, "timezone": "UTC"} if interval else "its interval is not of whole minutes"


def _field(name: str, text: str) -> str:
    """A field in numbers: its server reads neither long names nor ranges that wrap."""
    kind, found = KINDS[name], read(name, text)
    if text == "*" or (text.startswith("*/") and "," not in text):
        return text
    numbers = [str(number) for number in range(kind.low, kind.high + 1) if found.mask >> number & 1]
    nth = [f"{day}L" if which == LAST else f"{day}#{which}" for day, which in sorted(found.nth)]
    return ",".join([*numbers, *nth, *(["L"] if found.last else [])])
