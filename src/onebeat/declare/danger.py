"""What a sync would put to work and what cannot work: seen before it happens, in CI."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from onebeat.core import nominal_times
from onebeat.declare import stored
from onebeat.declare.stored import TaskValues
from onebeat.declare.sync import Change, Report
from onebeat.dispatch.celery import app as celery_app
from onebeat.queries import task_lookup


def dangers(app: object, report: Report, now: datetime) -> Iterator[tuple[str, str]]:
    """(task, what is wrong), for what code declares as it would stand after the sync, with what people have set."""
    for one in report.refused:
        yield one.name, one.why
    for change in report.changes:
        if change.after is not None and change.what not in ("removed", "deleted") and change.after["enabled"]:
            for why in _wrong(app, change, change.after, now):
                yield change.name, why


def _wrong(app: Any, change: Change, after: TaskValues, now: datetime) -> Iterator[str]:
    if next(runs(after, now), None) is None:
        yield "it never runs: its rule has no time that is left between start_time and expires"
    name = after["task"]
    task = app.tasks.get(name)
    if task is None:
        near = task_lookup.near(name, list(app.tasks))
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        yield f"task: the Celery app {app.main!r} has no task {name!r}{hint}"
    elif (why := celery_app.misfit(task, after["args"], after["kwargs"])) is not None:
        yield f"args, kwargs: {name} cannot take them: {why}"


def runs(values: TaskValues, now: datetime, anchor: datetime | None = None) -> Iterator[datetime]:
    """The nominal times ahead of a task with these values; none of one that is disabled."""
    start, end = _instant(values["start_time"]), _instant(values["expires"])
    if not values["enabled"] or values[stored.SCHEDULE] is None:
        return
    rule = stored.schedule(values[stored.SCHEDULE]).recurrence(start or anchor or now)
    found = nominal_times.first(rule, now, start_time=start, expires=end)
    while found is not None:
        yield found
        found = None if values["one_off"] else nominal_times.following(rule, found, expires=end)


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
