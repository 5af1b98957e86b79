"""`recurring(...)` and what has been declared with it in the `schedules.py` of the project's apps."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, Unpack

from onebeat.core.message_request import CeleryTask, MessageOptions, message_request
from onebeat.core.recurrence import Solar
from onebeat.declare.values import Cron, Every, Rule
from onebeat.errors import InvalidArgument

#: The module of each app that is looked for.
MODULE = "schedules"
_NAME = 200
_MOST_SECONDS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Declaration:
    """A task that code declares. `fields`: what it says beside the schedule, by column; texts of JSON are read."""

    name: str
    schedule: Rule
    fields: Mapping[str, object]
    #: The file and line, for people.
    place: str


#: By name, in the order in which they were declared.
_declared: dict[str, Declaration] = {}


def recurring(
    name: str,
    schedule: Rule,
    task: str | CeleryTask,
    *,
    args: Iterable[object] = (),
    kwargs: Mapping[str, object] | None = None,
    enabled: bool = True,
    start_time: datetime | None = None,
    missed: Literal["latest", "skip", "all"] | None = None,
    grace: timedelta | None = None,
    jitter: timedelta | None = None,
    overlap: Literal["allow", "skip"] | None = None,
    overlap_limit: timedelta | None = None,
    tags: Iterable[str] = (),
    description: str = "",
    **options: Unpack[MessageOptions],
) -> Declaration:
    """Declare a task that runs again and again. Call it in the `schedules.py` of an app; it touches no database.

    `name`: the task's name, unique in the project; a task of that name that is there already is taken over, and keeps
    what it has otherwise. `schedule`: `Cron("0 9 * * mon-fri", tz="Europe/Paris")`, `Every(minutes=10)` or
    `Solar("sunset", latitude, longitude)`. `task`: the Celery task or its name; `args`, `kwargs`: what JSON can hold.

    `start_time` (aware): no run before it, and the grid of `Every` begins there. `missed`: what becomes of times that
    no scheduler could send: one late run for the newest ("latest"), none ("skip"), or each ("all"); `grace`: lateness
    beyond which a time is missed. `jitter`: spread the sending over so long. `overlap`: "skip" a time while an earlier
    run is open, for `overlap_limit` at most. Durations in whole seconds. `tags`: words for `pause(Tag(...))`.
    `options`: those of `apply_async`, see `MessageOptions`; `expires` as an instant ends the task.

    What it does not name stays as people set it. The sync (`migrate`, a scheduler's start, `manage.py onebeat sync`)
    brings it into the database. Raises `InvalidArgument` naming it.
    """
    if not isinstance(name, str) or not name.strip() or len(name) > _NAME:
        raise InvalidArgument(f"name: a text of 1 to {_NAME} characters is needed, not {name!r}")
    if not isinstance(schedule, Cron | Every | Solar):
        raise InvalidArgument(f"schedule: Cron(...), Every(...) or Solar(...) is needed, not {schedule!r}")
    if not isinstance(enabled, bool):
        raise InvalidArgument(f"enabled: True or False is needed, not {enabled!r}")
    if start_time is not None and (not isinstance(start_time, datetime) or start_time.utcoffset() is None):
        raise InvalidArgument(f"start_time: an aware datetime is needed, not {start_time!r}")
    one = message_request(name, timedelta(0), task, args, kwargs, options, tags=tags)
    fields: dict[str, object] = {
        "task": one.task,
        "args": json.loads(one.args),
        "kwargs": json.loads(one.kwargs),
        "enabled": enabled,
        "start_time": start_time,
        "missed": _word("missed", missed, "latest", "skip", "all"),
        "overlap": _word("overlap", overlap, "allow", "skip"),
        "grace_seconds": _seconds("grace", grace),
        "jitter_seconds": _seconds("jitter", jitter),
        "overlap_limit_seconds": _seconds("overlap_limit", overlap_limit),
        "tags": one.tags or None,
        "extra": json.loads(one.extra) or None,
        "description": description or None,
        **one.columns,
    }
    if "headers" in one.columns:
        fields["headers"] = json.loads(one.columns["headers"])
    found = Declaration(name, schedule, {key: value for key, value in fields.items() if value is not None}, _caller())
    other = _declared.get(name)
    if other is not None and other.place != found.place:
        raise InvalidArgument(f"name: {name!r} is declared in {other.place} and again in {found.place}")
    _declared[name] = found
    return found


def declared() -> dict[str, Declaration]:
    """Everything declared so far, by name, after the `schedules.py` of every app has been imported.

    Raises what a module raises.
    """
    from django.utils.module_loading import autodiscover_modules

    autodiscover_modules(MODULE)
    return dict(_declared)


def failure(error: Exception) -> str:
    """What went wrong in a module of declarations, with the line if there is one, for people."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [_place(one.filename, one.lineno) for one in frames if Path(one.filename).name == f"{MODULE}.py"]
    return ": ".join([*lines[-1:], type(error).__name__, str(error)])


def forget(names: Iterable[str]) -> None:
    """Take declarations back: for tests that make some."""
    for name in names:
        _declared.pop(name, None)


def _word(name: str, value: object, *words: str) -> object:
    if value is not None and value not in words:
        raise InvalidArgument(f"{name}: {', '.join(words[:-1])} or {words[-1]} is needed, not {value!r}")
    return value


def _seconds(name: str, value: timedelta | None) -> int | None:
    if value is None:
        return None
    if not isinstance(value, timedelta):
        raise InvalidArgument(f"{name}: a timedelta is needed, not {value!r}")
    seconds = value.total_seconds()
    if seconds % 1 or not 0 <= seconds <= _MOST_SECONDS:
        raise InvalidArgument(f"{name}: whole seconds from 0 to {_MOST_SECONDS} are needed, not {seconds:g}")
    return int(seconds)


def _caller() -> str:
    """The line that called `recurring`: its folder, file and number."""
    frame = sys._getframe(2)
    return _place(frame.f_code.co_filename, frame.f_lineno)


def _place(file: str, line: int | None) -> str:
    return f"{'/'.join(Path(file).parts[-2:])}:{line}"
