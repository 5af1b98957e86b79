"""What is coming: the next nominal times, from the plans in the database."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from onebeat.core import plan as rules
from onebeat.core.catchup import wait
from onebeat.models import PeriodicTask, TaskState
from onebeat.store import definitions, pauses, states, vendors
from onebeat.store.definitions import BadDefinition, Definition
from onebeat.store.explain import UnknownTask
from onebeat.store.pauses import Pause
from onebeat.store.states import State
from onebeat.store.verdicts import iso

Found = tuple[datetime, str, timedelta, str]


def coming(using: str, name: str | None, count: int) -> list[dict[str, Any]]:
    """The next `count` nominal times of the task of this name, or of all tasks together; fewer if fewer follow.

    Each is a dict: task, due_at and leaves_at (ISO 8601, UTC), note (why it is to be skipped, or empty). Raises
    `UnknownTask`.
    """
    now = vendors.now(using)
    if name is None:
        rows = TaskState.objects.using(using).filter(due_at__isnull=False).order_by("due_at")
        keys = list(rows.values_list("pk", flat=True)[:count])
    else:
        keys = list(PeriodicTask._base_manager.using(using).filter(name=name).values_list("pk", flat=True))
        if not keys:
            raise UnknownTask(f"no task is named {name!r}")
    planned, found = states.read(using, keys), definitions.fetch(using, keys)
    pause = pauses.global_pause(using, now)
    each = [_of(found[key], planned[key], pause) for key in keys if key in found and key in planned]
    merged: Iterator[Found] = heapq.merge(*each)
    return [
        {"task": task, "due_at": iso(due_at), "leaves_at": iso(due_at + held), "note": note}
        for (due_at, task, held, note), _ in zip(merged, range(count), strict=False)
    ]


def _of(definition: Definition, state: State, pause: Pause | None) -> Iterator[Found]:
    due_at = state.due_at
    try:
        recurrence = definition.check(state.anchor)
    except BadDefinition:
        return
    if definition.copied() != state.copied:  # changed, and not planned yet: as it was is not as it will be
        return
    while due_at is not None:
        held = wait(recurrence, due_at, definition.policy, str(definition.id))
        yield due_at, definition.name, held, _note(definition, due_at, pause)
        due_at = None if definition.one_off else rules.following(recurrence, due_at, expires=definition.ends())


def _note(definition: Definition, due_at: datetime, pause: Pause | None) -> str:
    own = definition.policy.paused_until
    if own is not None and own > due_at:
        return f"paused{pauses.words(definition.paused_by, definition.paused_why)}"
    return pause.words() if pause is not None and (pause.until is None or pause.until > due_at) else ""
