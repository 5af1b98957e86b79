"""The hooks that decide what is sent: whoever overrides or patches one of them gets every message the plain way."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid5

from celery import beat

from onebeat.celery.entries import ModelEntry
from onebeat.core.headers import NAME_HEADER, TASK_HEADER
from onebeat.dispatch.base import Message, PublishResult, Refused
from onebeat.dispatch.celery.dispatcher import CeleryDispatcher
from onebeat.dispatch.celery.patches import original
from onebeat.dispatch.celery.prepared import Kinds
from onebeat.models import PeriodicTask
from onebeat.models.task_rules import SCHEDULES

logger = logging.getLogger("onebeat")
beat_logger = logging.getLogger("celery.beat")

#: In the order in which they are called.
SENDING = ("apply_entry", "apply_async", "send_task")
_OURS = ("celery.beat", "onebeat.compat.schedulers")


def dispatcher(scheduler: beat.Scheduler, plain_below: int, using: str) -> CeleryDispatcher:
    """The dispatcher for a scheduler of Celery's beat: through its hooks if one of them is not Celery's own.

    `using`: the alias of the database that its engine works on.
    """
    hooked = [name for name in SENDING if not _own(scheduler, name)]
    if not hooked:
        return LoggingDispatcher(scheduler.app, plain_below=plain_below)
    logger.info("each message goes through %s", ", ".join(hooked))
    return HookedDispatcher(scheduler, plain_below, using)


class LoggingDispatcher(CeleryDispatcher):
    """Writes the line that Celery's beat writes for each message; people look for it in their logs."""

    def publish(self, messages: Sequence[Message], *, singly: bool = False) -> list[PublishResult]:
        if beat_logger.isEnabledFor(logging.INFO):
            for message in messages:
                name = message.options.get("headers", {}).get(NAME_HEADER)
                beat_logger.info("Scheduler: Sending due task %s (%s)", name, message.task)
        return super().publish(messages, singly=singly)


class HookedDispatcher(CeleryDispatcher):
    """Hands each message to `scheduler.apply_entry` as an entry of its task.

    A hook that returns without an error has dealt with the message, and it counts as sent whatever the hook did.
    """

    def __init__(self, scheduler: Any, plain_below: int, using: str) -> None:
        super().__init__(scheduler.app, plain_below=plain_below)
        self._scheduler = scheduler
        self._using = using
        self._apply_async = scheduler.apply_async
        self._error: Exception | None = None
        self._tasks: dict[int, PeriodicTask] = {}
        scheduler.apply_async = self._noting_errors

    def publish(self, messages: Sequence[Message], *, singly: bool = False) -> list[PublishResult]:
        rows = PeriodicTask._base_manager.using(self._using).select_related(*SCHEDULES)
        self._tasks = rows.in_bulk({message.periodic_task for message in messages})
        return super().publish(messages, singly=singly)

    def _send(self, message: Message, producer: Any, kinds: Kinds | None = None) -> PublishResult:
        if message.periodic_task not in self._tasks:
            return Refused("the task was deleted meanwhile")
        return super()._send(message, producer)

    def _apply(self, message: Message, producer: object) -> None:
        """Hand the message over as an entry. Raises what went wrong with the broker."""
        entry = ModelEntry(self._tasks[message.periodic_task], app=self._scheduler.app)
        options = self._options(message, producer)
        del options["producer"]
        entry.args, entry.kwargs, entry.options = list(message.args), message.kwargs, options
        self._error = None
        self._scheduler.copies = 0
        # As Celery's tick calls it: those who patch it count the arguments.
        self._scheduler.apply_entry(entry, producer=producer)
        if self._error is not None:
            wrapped = isinstance(self._error, beat.SchedulingError)
            raise (self._error.__context__ if wrapped else None) or self._error

    def _overridden(self, name: str) -> bool:
        return True

    def _arguments_error(self, message: Message) -> str | None:
        """Nothing is known before the hook has been: it may change the arguments."""
        return None

    def _noting_errors(self, *args: object, **kwargs: object) -> object:
        """`apply_async` as `apply_entry` finds it: Celery's own logs the error and says nothing."""
        try:
            return self._apply_async(*args, **kwargs)
        except Exception as error:
            self._error = error
            raise


def copied(options: dict[str, Any], number: int) -> dict[str, Any]:
    """The options of a further message for the same occurrence: an id of its own, the same after a crash, and no
    mark of the occurrence, of which a worker would run only one."""
    headers = {key: value for key, value in options.get("headers", {}).items() if key != TASK_HEADER}
    return {**options, "headers": headers, "task_id": str(uuid5(UUID(options["task_id"]), str(number)))}


def _own(scheduler: beat.Scheduler, name: str) -> bool:
    """Whether nobody has had a hand in this method, neither in a subclass nor by a patch; a known observer has not."""
    places = [vars(each) for each in (scheduler, *type(scheduler).__mro__)]
    return all(original(place[name], *_OURS) is not None for place in places if name in place)
