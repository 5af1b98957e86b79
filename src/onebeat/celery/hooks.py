"""The hooks that decide what is sent: whoever overrides or patches one of them gets every message the plain way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from types import FunctionType, SimpleNamespace
from typing import Any
from uuid import UUID, uuid5

from celery import beat
from django.db import DEFAULT_DB_ALIAS

from onebeat.celery.entries import ModelEntry
from onebeat.core.headers import TASK_HEADER
from onebeat.dispatch.base import Message, PublishResult, Refused
from onebeat.dispatch.celery.dispatcher import CeleryDispatcher
from onebeat.dispatch.celery.prepared import Kinds, arguments_error
from onebeat.models import PeriodicTask
from onebeat.models.task_rules import SCHEDULES

logger = logging.getLogger("onebeat")

#: In the order in which they are called.
SENDING = ("apply_entry", "apply_async", "send_task")
_OURS = ("celery.beat", "onebeat.compat.schedulers")


def dispatcher(scheduler: beat.Scheduler, plain_below: int) -> CeleryDispatcher:
    """The dispatcher for a scheduler of Celery's beat: through its hooks if one of them is not Celery's own."""
    app: Any = scheduler.app
    hooked = [name for name in SENDING if not _own(scheduler, name)]
    if not hooked:
        return CeleryDispatcher(app, plain_below=plain_below)
    logger.info("messages go one by one through %s", ", ".join(hooked))
    return HookedDispatcher(scheduler, app)


class HookedDispatcher(CeleryDispatcher):
    """Hands each message to `scheduler.apply_entry` as an entry of its task.

    A hook that returns without an error has dealt with the message, and it counts as sent whatever the hook did.
    """

    def __init__(self, scheduler: Any, app: Any) -> None:
        super().__init__(_Behind(app, self._hand_over))  # type: ignore[arg-type]
        self._scheduler = scheduler
        self._apply_async = scheduler.apply_async
        self._error: Exception | None = None
        self._task: PeriodicTask | None = None
        self._tasks: dict[int, PeriodicTask] = {}
        scheduler.apply_async = self._watched

    def publish(self, messages: Sequence[Message], *, singly: bool = False) -> list[PublishResult]:
        rows = PeriodicTask._base_manager.using(DEFAULT_DB_ALIAS).select_related(*SCHEDULES)
        self._tasks = rows.in_bulk({message.periodic_task for message in messages})
        return super().publish(messages, singly=singly)

    def _send(self, message: Message, producer: Any, kinds: Kinds | None = None) -> PublishResult:
        self._task = self._tasks.get(message.periodic_task)
        return Refused("the task was deleted meanwhile") if self._task is None else super()._send(message, producer)

    def _overridden(self, name: str) -> bool:
        return True

    def _arguments_error(self, message: Message) -> str | None:
        task = self._scheduler.app.tasks.get(message.task)
        return None if task is None else arguments_error(task, message.args, message.kwargs)

    def _hand_over(self, args: Any, kwargs: Any, *, producer: Any, **options: Any) -> None:
        """What the dispatcher calls in place of the task's `apply_async`. Raises what went wrong with the broker."""
        entry: Any = ModelEntry(self._task, app=self._scheduler.app)
        entry.args, entry.kwargs, entry.options = list(args), kwargs, options
        self._error = None
        self._scheduler.copies = 0
        # As Celery's tick calls it: those who patch it count the arguments.
        self._scheduler.apply_entry(entry, producer=producer)
        if self._error is not None:
            wrapped = isinstance(self._error, beat.SchedulingError)
            raise (self._error.__context__ if wrapped else None) or self._error

    def _watched(self, *args: Any, **kwargs: Any) -> Any:
        """`apply_async` as `apply_entry` finds it: Celery's own logs the error and says nothing."""
        try:
            return self._apply_async(*args, **kwargs)
        except Exception as error:
            self._error = error
            raise


class _Behind:
    """The Celery app as a dispatcher sees it, with `hand_over` as the `apply_async` of every task."""

    def __init__(self, app: Any, hand_over: Callable[..., None]) -> None:
        self._app = app
        task = SimpleNamespace(apply_async=hand_over)
        self.tasks = SimpleNamespace(get=lambda name: task)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)


def copied(options: dict[str, Any], number: int) -> dict[str, Any]:
    """The options of a further message for the same occurrence: an id of its own, the same after a crash, and no
    mark of the occurrence, of which a worker would run only one."""
    headers = {key: value for key, value in options.get("headers", {}).items() if key != TASK_HEADER}
    return {**options, "headers": headers, "task_id": str(uuid5(UUID(options["task_id"]), str(number)))}


def _own(scheduler: Any, name: str) -> bool:
    """Whether nobody has had a hand in this method, neither in a subclass nor by a patch."""
    places = [vars(each) for each in (scheduler, *type(scheduler).__mro__)]
    found = [place[name] for place in places if name in place]
    # Their type and their module: a wrapper copies the names of what it wraps, but not the globals.
    return all(type(one) is FunctionType and one.__globals__["__name__"] in _OURS for one in found)
