"""Classic mode: Celery's own loop over entries in memory, for schedulers that replace a part that onebeat has not.

It is what django-celery-beat does, and promises no more: one scheduler process, state that lags behind. The reading
half (`all_as_schedule`, `schedule`) answers in every scheduler, and writes nothing.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from celery import beat
from django.core.exceptions import ObjectDoesNotExist
from django.db import DEFAULT_DB_ALIAS, Error

from onebeat.celery.entries import ModelEntry
from onebeat.core import clock
from onebeat.db import lost_connections, schema
from onebeat.models import Beat, Change, PeriodicTask, PeriodicTasks
from onebeat.store import plans, scheduler_rows

logger = logging.getLogger("onebeat")

#: Everything is read again after this long, for changes that nothing told of.
SCHEDULE_SYNC_MAX_INTERVAL = 300
#: How often it says that it is at work, in seconds.
_REPORT = 2.0


#: Its published types leave out what subclasses use.
_Scheduler: Any = beat.Scheduler


class ClassicScheduler(_Scheduler):  # type: ignore[misc]
    """The parts that schedulers written for django-celery-beat replace."""

    Entry: Any = ModelEntry
    Model: Any = PeriodicTask
    Changes: Any = PeriodicTasks

    sync_every = 3 * 60

    _schedule: dict[str, Any] | None = None
    _last_timestamp: Any = None
    #: Nothing here asks for it; subclasses that bring their own `schedule` do.
    _initial_read = True
    _heap_invalidated = False
    _read_at = _looked_at = 0.0
    _rows: int | None = None
    _stale = _urgent = False
    _beat: int | None = None
    _reported = -_REPORT

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._dirty: set[str] = set()
        super().__init__(*args, **kwargs)

    def enabled_models_qs(self) -> Any:
        """The rows that are enabled."""
        manager = self.Model._default_manager
        return manager.enabled() if hasattr(manager, "enabled") else manager.filter(enabled=True)

    def enabled_models(self) -> Any:
        """The rows to make entries from."""
        return self.enabled_models_qs()

    def all_as_schedule(self) -> dict[str, Any]:
        """An entry for each enabled row, by name. A row that none can be made from is logged and left out."""
        found = {}
        for model in self.enabled_models():
            try:
                found[model.name] = self.Entry(model, app=self.app)
            except Exception as error:
                logger.error("task %r is left out: %r", model.name, error)
        return found

    def schedule_changed(self) -> bool:
        """Whether `Changes` has moved since this was asked last."""
        before, self._last_timestamp = self._last_timestamp, self.Changes.last_change()
        return bool(self._last_timestamp and self._last_timestamp != before)

    @property
    def schedule(self) -> Any:
        """The entries, read again when something changed. While the database is away they stay as they are."""
        self._try(self._read)
        return self._schedule or {}

    def _read(self) -> None:
        changed = self.schedule_changed()
        old = clock.monotonic() - self._read_at > SCHEDULE_SYNC_MAX_INTERVAL
        if self._schedule is None or changed or old or self._stale:
            self.sync()
            self._schedule = self.all_as_schedule()
            self._read_at, self._stale = clock.monotonic(), False
            self._heap_invalidated = self._heap is not None

    def schedules_equal(self, *args: Any, **kwargs: Any) -> bool:
        """Whether the heap may stay as it is."""
        invalid, self._heap_invalidated = self._heap_invalidated, False
        return not invalid

    def reserve(self, entry: Any) -> Any:
        """Count a run of this entry."""
        following = next(entry)
        if self._schedule is not None:
            self._schedule[entry.name] = following
        self._dirty.add(entry.name)
        self._urgent = self._urgent or bool(getattr(following.model, "one_off", False))
        return following

    def sync(self) -> None:
        """Write the run state of what ran. What cannot be written now is kept for the next time."""
        for name in list(self._dirty):
            self._save(name, (self._schedule or {}).get(name))

    def classic_tick(self) -> float:
        """One step of Celery's loop; returns the seconds until the next."""
        self._try(self._look)
        self._try(self._report)
        if self._urgent:  # a one-off that is not recorded as run would run again after a crash
            self._urgent = False
            self.sync()
        delay = float(_Scheduler.tick(self))
        heap: Any = self._heap
        if delay > 0 and heap and heap[0][0] <= self._when(heap[0][2], 0):
            # Celery before 5.7 leaves an entry on top that is not due when its time has come.
            _, priority, entry = heap[0]
            due, left = self.is_due(entry)
            if not due:
                again = self._when(entry, left or self.max_interval)
                heapq.heapreplace(heap, beat.event_t(again, priority, entry))
                return 0.0
        return delay

    def _save(self, name: str, entry: Any) -> None:
        try:
            if entry is not None:
                with lost_connections.django_errors(DEFAULT_DB_ALIAS):
                    entry.save()
        except Error as error:
            self._failed(error)
            return
        except ObjectDoesNotExist:
            logger.info("task %r was deleted meanwhile", name)
        except Exception as error:
            logger.error("the run state of task %r is lost: %r", name, error)
        self._dirty.discard(name)

    def _look(self) -> None:
        """See changes that `Changes` does not tell of."""
        hints = Change.objects.using(DEFAULT_DB_ALIAS)
        if schema.there(DEFAULT_DB_ALIAS, Change._meta.db_table) and hints.exists():
            # Every save leaves one, and no engine takes them away.
            hints.all().delete()
            plans.touch(DEFAULT_DB_ALIAS)
        if clock.monotonic() - self._looked_at >= self.max_interval:
            # A deleted row leaves none.
            before, self._rows = self._rows, self.Model._default_manager.count()
            self._stale = before != self._rows
            self._looked_at = clock.monotonic()

    def _report(self) -> None:
        """Say that this scheduler is at work: the engine's hold while it is."""
        if clock.monotonic() - self._reported < _REPORT:
            return
        self._reported = clock.monotonic()
        if not schema.there(DEFAULT_DB_ALIAS, Beat._meta.db_table):
            return
        if self._beat is None or not scheduler_rows.report(
            DEFAULT_DB_ALIAS, self._beat, able_since=None, lag=timedelta(0)
        ):
            self._beat = scheduler_rows.register(DEFAULT_DB_ALIAS, scheduler_rows.CLASSIC)

    def classic_close(self) -> None:
        """Write what is owed, and say that this scheduler has stopped."""
        self.sync()
        if self._beat is not None:
            self._try(partial(scheduler_rows.stop, DEFAULT_DB_ALIAS, self._beat))
            self._beat = None

    def _try(self, work: Callable[[], None]) -> None:
        """Do something that can be left out while the database is away."""
        try:
            with lost_connections.django_errors(DEFAULT_DB_ALIAS):
                work()
        except Error as error:
            self._failed(error)

    def _failed(self, error: Error) -> None:
        logger.error("the database failed: %s", error)
        lost_connections.drop_connection(DEFAULT_DB_ALIAS)
