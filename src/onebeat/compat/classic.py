"""Classic mode: Celery's own loop over entries in memory, for schedulers that replace a part that onebeat has not.

It is what django-celery-beat does, and promises no more: one scheduler process, state that lags behind. The reading
half (`all_as_schedule`, `schedule`) answers in every scheduler, and writes nothing.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

from celery import beat
from django.core.exceptions import ObjectDoesNotExist
from django.db import Error, models, router

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


class Changes(Protocol):
    """What `DatabaseScheduler.Changes` has to have."""

    @classmethod
    def last_change(cls) -> datetime | None:
        """When something changed last; None if nothing ever did."""


class ClassicScheduler(beat.Scheduler):
    """The parts that schedulers written for django-celery-beat replace."""

    Entry: type[ModelEntry] = ModelEntry
    Model: type[PeriodicTask] = PeriodicTask
    Changes: type[Changes] = PeriodicTasks

    _heap: list[beat.event_t] | None
    _when: Callable[[beat.ScheduleEntry, float], float]
    _schedule: dict[str, ModelEntry] | None = None
    _last_timestamp: datetime | None = None
    _initial_read = True
    _heap_invalidated = False
    #: Celery's loop, or one in its place, has asked for the heap: this scheduler is at work and may write.
    _at_work = False
    #: Something changed that is not read yet.
    _stale = False
    #: A one-off has run whose run is not recorded: after a crash it would run again.
    _urgent = False
    _read_at = -math.inf
    _reported_at = -math.inf
    _beat: int | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._dirty: set[str] = set()
        super().__init__(*args, **kwargs)

    @property
    def _using(self) -> str:
        """The alias of the database that the tasks are written to."""
        return router.db_for_write(self.Model)

    def enabled_models_qs(self) -> models.QuerySet[PeriodicTask]:
        """The rows that are enabled."""
        if self._at_work:
            self._take_hints()  # where an override comes here once for each schema, they lie in each
        manager = self.Model._default_manager.using(self._using)
        return manager.enabled() if hasattr(manager, "enabled") else manager.filter(enabled=True)

    def enabled_models(self) -> Iterable[PeriodicTask]:
        """The rows to make entries from."""
        return self.enabled_models_qs()

    def all_as_schedule(self) -> dict[str, ModelEntry]:
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
    def schedule(self) -> dict[str, ModelEntry]:  # type: ignore[override]
        """The entries, read again when something changed. While the database is unavailable they stay as they are."""
        self._try(self._read)
        if self._schedule is None:
            self._schedule = {}
        return self._schedule

    def _read(self) -> None:
        if self._at_work:
            self._report()
            self._take_hints()
        if self.schedule_changed() or clock.monotonic() - self._read_at > SCHEDULE_SYNC_MAX_INTERVAL:
            self._stale = True
        if not (self._initial_read or self._stale):
            return
        self._sync()
        before, self._schedule = self._schedule or {}, self.all_as_schedule()
        for name in self._dirty & before.keys() & self._schedule.keys():
            # What ran and could not be recorded has run all the same.
            self._schedule[name].continue_from(before[name])
        if not self._initial_read:
            self._heap, self._heap_invalidated = [], True
        self._initial_read = self._stale = False
        self._read_at = clock.monotonic()

    def schedules_equal(self, *args: Any, **kwargs: Any) -> bool:
        """Whether the heap may stay as it is. Every loop asks this before it looks at the heap."""
        self._at_work = True
        if self._urgent:
            self._urgent = False
            self._sync()
        invalid, self._heap_invalidated = self._heap_invalidated, False
        return not invalid and super().schedules_equal(*args, **kwargs)

    def populate_heap(self, *args: Any, **kwargs: Any) -> None:
        """Fill the heap from the entries."""
        self._at_work = True
        super().populate_heap(*args, **kwargs)

    def reserve(self, entry: ModelEntry) -> ModelEntry:  # type: ignore[override]
        """Count a run of this entry."""
        following = next(entry)
        if self._schedule is not None:
            self._schedule[entry.name] = following
        self._dirty.add(entry.name)
        self._urgent = self._urgent or bool(getattr(following.model, "one_off", False))
        return following

    def sync(self) -> None:
        """Write the run state of what ran. What the database does not take now is kept for the next time.

        Raises what an entry's own `save` raises, when the others are written: what that entry had to write is lost.
        """
        failed: Exception | None = None
        for name in list(self._dirty):
            entry = (self._schedule or {}).get(name)
            try:
                if entry is not None:
                    with lost_connections.django_errors(self._using):
                        entry.save()
            except Error as error:
                self._failed(error)
                continue
            except ObjectDoesNotExist:
                logger.info("task %r was deleted meanwhile", name)
            except Exception as error:
                failed = error
            self._dirty.discard(name)
        if failed is not None:
            raise failed

    def _sync(self) -> None:
        """`sync` in the middle of the loop, which goes on whatever an entry raises."""
        try:
            self.sync()
        except Exception as error:
            logger.error("the run state of a task is lost: %r", error)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """One step of Celery's loop, or of one that was mixed in; returns the seconds until the next."""
        delay = super().tick(*args, **kwargs)
        heap = self._heap
        if delay > 0 and heap and heap[0][0] <= self._when(heap[0][2], 0):
            # Celery before 5.7 leaves an entry on top that is not due when its time has come.
            _, priority, entry = heap[0]
            due, left = self.is_due(entry)
            if not due:
                again = self._when(entry, left or self.max_interval or 0)
                heapq.heapreplace(heap, beat.event_t(again, priority, entry))
                return 0.0
        return delay

    def close(self) -> None:
        """Write what is not written yet, and say that this scheduler has stopped."""
        super().close()
        if self._beat is not None:
            self._try(partial(scheduler_rows.stop, self._using, self._beat))
            self._beat = None

    def _take_hints(self) -> None:
        """Let what hints tell of be seen in `Changes`, and take them away: no engine does."""
        hints = Change.objects.using(self._using)
        if schema.there(self._using, Change._meta.db_table) and hints.exists():
            hints.all().delete()
            self._stale = True
            plans.touch(self._using)

    def _report(self) -> None:
        """Say that this scheduler is at work: engines stand by while it is."""
        if clock.monotonic() - self._reported_at < _REPORT:
            return
        self._reported_at = clock.monotonic()
        if not schema.there(self._using, Beat._meta.db_table):
            return
        if self._beat is None or not scheduler_rows.report(
            self._using, self._beat, able_since=None, unable_reason=Beat.Unable.CLASSIC, lag=timedelta(0)
        ):
            self._beat = scheduler_rows.register(self._using, Beat.Unable.CLASSIC)

    def _try(self, work: Callable[[], None]) -> None:
        """Do something that can be left out while the database is unavailable."""
        try:
            with lost_connections.django_errors(self._using):
                work()
        except Error as error:
            self._failed(error)

    def _failed(self, error: Error) -> None:
        logger.error("the database failed: %s", error)
        lost_connections.drop_connection(self._using)
