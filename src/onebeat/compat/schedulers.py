"""`django_celery_beat.schedulers`: onebeat's engine behind `DatabaseScheduler`, and the hooks that people override.

A subclass that overrides nothing but `HONOURED`, or has a `tick` that calls `super()`, runs on the engine. One that
replaces anything else of the scheduler, its entries or its loop runs in classic mode and says so; nothing that somebody
overrode is passed over in silence.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from multiprocessing.util import Finalize
from types import FunctionType
from typing import Any

from celery import current_app
from celery.beat import ScheduleEntry
from django.db import InterfaceError, OperationalError, ProgrammingError

from onebeat.celery import beat
from onebeat.celery.entries import ModelEntry
from onebeat.celery.hooks import SENDING, copied
from onebeat.compat.classic import SCHEDULE_SYNC_MAX_INTERVAL, ClassicScheduler
from onebeat.compat.utils import NEVER_CHECK_TIMEOUT, aware_now, now
from onebeat.db import lost_connections
from onebeat.declare.sources import Source, of_apps
from onebeat.dispatch.celery.patches import written_in
from onebeat.dispatch.celery.schedules import clocked
from onebeat.importing import result_cleanup
from onebeat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    PeriodicTasks,
    SolarSchedule,
)

__all__ = [
    "ADD_ENTRY_ERROR",
    "DEFAULT_MAX_INTERVAL",
    "NEVER_CHECK_TIMEOUT",
    "SCHEDULE_SYNC_MAX_INTERVAL",
    "ClockedSchedule",
    "CrontabSchedule",
    "DatabaseScheduler",
    "Finalize",
    "IntervalSchedule",
    "ModelEntry",
    "PeriodicTask",
    "PeriodicTasks",
    "SolarSchedule",
    "aware_now",
    "clocked",
    "current_app",
    "debug",
    "info",
    "logger",
    "now",
    "warning",
]

logger = logging.getLogger("onebeat")
debug, info, warning = logger.debug, logger.info, logger.warning

DEFAULT_MAX_INTERVAL = 5  # seconds
ADD_ENTRY_ERROR = "the entry %r of CELERY_BEAT_SCHEDULE is refused: %s (%r)"
#: What may be overridden without giving up the engine.
HONOURED = {
    *SENDING,
    *("setup_schedule", "install_default_entries", "update_from_dict"),
    *("close", "info", "max_interval", "sync_every", "sync_every_tasks", "logger"),
}
_OFF = (
    "it runs in classic mode, as under django-celery-beat: run one such process and no other scheduler beside it. "
    "Off are: any number of schedulers, one task_id for each occurrence, the ledger and its reasons, recovery after a "
    "crash, missed-run policies and pauses, quarantine, and work that follows what is due"
)


class DatabaseScheduler(beat.Scheduler, ClassicScheduler):
    """Celery's beat on the tasks in the database.

    Making one touches nothing: entries of CELERY_BEAT_SCHEDULE are stored with the first tick (in classic mode when it
    is made, as ever; not with `lazy`).
    """

    max_interval = DEFAULT_MAX_INTERVAL
    #: How many messages the hooks have made of the entry in hand.
    copies = 0

    def __init__(self, *args: object, lazy: bool = False, **kwargs: object) -> None:
        #: The hooks for which this scheduler runs in classic mode; empty on the engine.
        self.classic = overridden(type(self))
        self._stored = lazy
        if self.classic and not lazy:
            logger.warning("%s replaces %s: %s", type(self).__name__, ", ".join(self.classic), _OFF)
            self.sync_every = 3 * 60
        super().__init__(*args, lazy=lazy or not self.classic, **kwargs)
        if self.classic and not lazy:
            # A process that multiprocessing made (`celery worker -B`) may end without `close`.
            self._finalize = Finalize(self, self.sync, exitpriority=5)

    def setup_schedule(self) -> None:
        """Store the entries of CELERY_BEAT_SCHEDULE, and Celery's own clean-up of results, as tasks."""
        declared = self.app.conf.beat_schedule
        self.install_default_entries(declared)
        self.update_from_dict(declared)

    def declared_in_code(self) -> list[Source]:
        """The `schedules.py` of the apps: what the settings say replaces what the row says, as ever."""
        return [of_apps()]

    def install_default_entries(self, data: Mapping[str, object]) -> None:
        """Store Celery's own clean-up of results, unless results never expire."""
        if self.app.conf.result_expires:
            self.update_from_dict({result_cleanup.NAME: result_cleanup.entry()})

    def update_from_dict(self, mapping: Mapping[str, Mapping[str, object]]) -> None:
        """Store entries as tasks by name; what the settings say replaces what the row says.

        An entry that has no place in a task, wholly or in part, is logged with what is wrong, and the others go on.
        """
        for name, entry in mapping.items():
            try:
                with lost_connections.django_errors(self._using):
                    self.Entry.from_entry(name, app=self.app, **entry)
            except (OperationalError, InterfaceError, ProgrammingError):
                raise  # the database is unavailable or not migrated: no entry is to blame
            except Exception as error:
                logger.error(ADD_ENTRY_ERROR, name, error, entry)

    def reserve(self, entry: ModelEntry) -> ModelEntry:  # type: ignore[override]
        """Count a run of this entry; on the engine that is the engine's to do."""
        return super().reserve(entry) if self.classic else entry

    def apply_async(self, entry: ScheduleEntry, producer: Any = None, advance: bool = True, **kwargs: Any) -> Any:
        """Send the message of an entry. A hook may do so several times for one: each message has an id of its own."""
        given = entry.options
        if self.copies and given and "task_id" in given:
            entry.options = copied(given, self.copies)
        self.copies += 1
        try:
            return super().apply_async(entry, producer=producer, advance=advance, **kwargs)
        finally:
            entry.options = given

    def tick(self, *args: object, **kwargs: object) -> float:
        """Do what is due. Returns the seconds that beat may sleep."""
        if self.classic:
            return ClassicScheduler.tick(self, *args, **kwargs)
        if not self._stored:
            self._store()
        return super().tick()

    def close(self) -> None:
        """Leave things in order."""
        if self.classic:
            ClassicScheduler.close(self)
        else:
            super().close()

    @property
    def info(self) -> str:
        """A line for beat's banner."""
        return f"    . classic mode -> {', '.join(self.classic)}" if self.classic else super().info

    def _store(self) -> None:
        def store() -> None:
            self.setup_schedule()
            self._stored = True

        self._try(store)


def overridden(kind: type) -> list[str]:
    """What a scheduler class replaces that the engine would not ask; also what was patched into ours or its entries."""
    ours = DatabaseScheduler.__mro__
    own = [each for each in kind.__mro__ if each not in ours]
    names = {
        name
        for each in own
        for name in vars(each)
        if hasattr(DatabaseScheduler, name) and not name.startswith("__") and not _ends_in_ours(kind, each, name)
    }
    for each in (DatabaseScheduler, ClassicScheduler, ModelEntry):
        patched = {name for name, value in vars(each).items() if name[:2] != "__" and not _as_written(each, value)}
        names |= {f"{each.__name__}.{name}" if each is ModelEntry else name for name in patched}
    return sorted(names - HONOURED)


def _ends_in_ours(kind: type, each: type, name: str) -> bool:
    """Whether this is a `tick` that does something of its own and calls `super()`, which is the engine's."""
    tick = inspect.unwrap(vars(each)[name]) if name == "tick" else None
    before = kind.__mro__.index(each) < kind.__mro__.index(DatabaseScheduler)
    return before and isinstance(tick, FunctionType) and "super" in tick.__code__.co_names


def _as_written(each: type, value: object) -> bool:
    """Whether a member of a class of ours is what stands in its module, as far as that can be told."""
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    if isinstance(function, FunctionType):
        return written_in(function, each.__module__)
    return not callable(function) or function in (ModelEntry, PeriodicTask, PeriodicTasks)
