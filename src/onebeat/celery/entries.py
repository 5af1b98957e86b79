"""A task's row as an entry of Celery's beat: what hooks are handed, and what classic mode runs on."""

from __future__ import annotations

import json
import logging
import math
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from celery import Celery, current_app, schedules
from celery.beat import ScheduleEntry
from django.db import router
from kombu.utils.json import loads

from onebeat.core import clock
from onebeat.core.headers import NAME_HEADER, free
from onebeat.core.recurrence import Cron, Recurrence
from onebeat.db import schema
from onebeat.declare.entries import remember_entry
from onebeat.dispatch.celery.schedules import NEVER_CHECK_TIMEOUT
from onebeat.importing import celery_entries
from onebeat.models import PeriodicTask, TaskOptions
from onebeat.models.instants import from_their_run, to_their_run, to_utc
from onebeat.queries import task_lookup

logger = logging.getLogger("onebeat")

#: Seconds until a disabled task is looked at again.
_DISABLED = 5.0


class RuleSchedule(schedules.BaseSchedule):
    """A rule that Celery's own schedules cannot express (`L`, `mon#2`), in Celery's manner."""

    def __init__(self, rule: Recurrence) -> None:
        super().__init__()
        self.rule = rule

    def remaining_estimate(self, last_run_at: datetime) -> timedelta | None:  # type: ignore[override]
        """Time left until the run after `last_run_at`; None if there is none."""
        due = self.rule.after(to_utc(last_run_at))
        return None if due is None else due - clock.host_now()

    def is_due(self, last_run_at: datetime) -> schedules.schedstate:
        """`(is_due, seconds until it is worth asking again)`."""
        left, following = self.remaining_estimate(last_run_at), self.remaining_estimate(clock.host_now())
        due = left is not None and left.total_seconds() <= 0
        wait = following if due else left
        return schedules.schedstate(due, NEVER_CHECK_TIMEOUT if wait is None else wait.total_seconds())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuleSchedule) and self.rule == other.rule

    def __hash__(self) -> int:
        return hash(self.rule)


class ModelEntry(ScheduleEntry):
    """An entry made from a task's row. Asking it changes nothing; `save` writes the run state."""

    name: str
    app: Celery
    schedule: schedules.BaseSchedule
    args: list[object]  # type: ignore[assignment]
    kwargs: dict[str, object]
    options: dict[str, object]
    #: As django-celery-beat writes it: in UTC where times are naive.
    last_run_at: datetime
    model_schedules: ClassVar[tuple[tuple[object, object, str], ...]] = celery_entries.KINDS
    save_fields: ClassVar[list[str]] = ["last_run_at", "total_run_count", "no_changes"]

    def __init__(self, model: PeriodicTask, app: Celery | None = None) -> None:
        """Raises what a row that cannot be read raises."""
        self.app = app or current_app._get_current_object()  # type: ignore[attr-defined]
        self.model = model
        self.name = model.name
        self.task = model.task
        self.schedule = _schedule(model)
        self.args = loads(model.args or "[]")
        self.kwargs = loads(model.kwargs or "{}")
        self.options = _options(model)
        self.total_run_count = model.total_run_count
        self.last_run_at = model.last_run_at or self._before_first_run()

    def _before_first_run(self) -> datetime:
        """What stands for the last run of a task that has not run yet."""
        model = self.model
        if start := model.start_time:
            # So that the first run is the first match at or after the start.
            return to_their_run(to_utc(start) - getattr(self.schedule, "run_every", timedelta(0)))
        return to_their_run(to_utc(model.date_changed)) if model.date_changed else self._default_now()

    def is_due(self) -> schedules.schedstate:
        """`(is_due, seconds until it is worth asking again)`. Writes nothing."""
        model, now = self.model, clock.host_now()
        if not model.enabled:
            return schedules.schedstate(False, _DISABLED)
        start, end = model.start_time, model.expires
        if start and to_utc(start) > now:
            first = to_utc(model.due_start_time(UTC) or start)
            return schedules.schedstate(False, math.ceil((first - now).total_seconds()))
        if (end and to_utc(end) <= now) or (model.one_off and model.total_run_count > 0):
            return schedules.schedstate(False, NEVER_CHECK_TIMEOUT)
        return self.schedule.is_due(from_their_run(self.last_run_at))

    def default_now(self) -> datetime:
        """The present instant."""
        return from_their_run(self._default_now())

    def _default_now(self) -> datetime:
        """The present instant as `last_run_at` takes it."""
        return to_their_run(clock.host_now())

    def __next__(self) -> ModelEntry:  # type: ignore[override]
        self.model.last_run_at = self._default_now()
        self.model.total_run_count += 1
        self.model.no_changes = True
        return self.__class__(self.model, app=self.app)

    next = __next__  # type: ignore[assignment]

    def continue_from(self, other: ModelEntry) -> None:
        """Take over the run state of another entry of the same task, which the database does not have yet."""
        self.model.last_run_at = self.last_run_at = other.model.last_run_at or other.last_run_at
        self.model.total_run_count = self.total_run_count = other.model.total_run_count
        self.model.no_changes = True

    def save(self) -> None:
        """Write the run state into the row as it is now; a one-off that has run is disabled."""
        if self.model.last_run_at is None:
            self.model.last_run_at = self.last_run_at
        self.last_run_at, self.total_run_count = self.model.last_run_at, self.model.total_run_count
        kind = type(self.model)
        row = kind._default_manager.using(router.db_for_write(kind)).get(pk=self.model.pk)
        for name in self.save_fields:
            setattr(row, name, getattr(self.model, name, None))
        written = list(self.save_fields)
        if row.one_off and row.total_run_count > 0:
            row.enabled = False
            written.append("enabled")
        # Not the whole row: it may be edited at this moment.
        row.save(update_fields={field.name for field in row._meta.concrete_fields} & set(written))

    def _disable(self, model: PeriodicTask) -> None:
        """Switch a task off. Subclasses call it while they are being made, too."""
        model.no_changes = True
        model.enabled = False
        model.save()

    @classmethod
    def to_model_schedule(cls, schedule: object) -> tuple[object, str]:
        """The row for a Celery schedule, and the name of the task's field for it. Raises `ValidationError`."""
        schedule, model, field = celery_entries.kind_of(schedule, cls.model_schedules)
        return model.from_schedule(schedule), field

    @classmethod
    def from_entry(cls, name: str, app: Celery | None = None, **entry: Any) -> ModelEntry:
        """Store an entry of CELERY_BEAT_SCHEDULE as the task of that name.

        Raises `ValidationError` naming each key, option or value that has no place in a task.
        """
        fields, options = cls._unpack_fields(**entry), celery_entries.options(entry.get("options") or {})
        relative = celery_entries.relative_note(entry.get("schedule"), entry.get("relative"))
        for note in filter(None, (relative, *options.notes)):
            logger.warning("entry %r of CELERY_BEAT_SCHEDULE: %s", name, note)
        row = store_entry(name, fields, options.extra)
        remember_entry(name, row, entry)
        return cls(row, app=app)

    @classmethod
    def _unpack_fields(cls, schedule: Any = None, options: Any = None, **entry: Any) -> dict[str, Any]:
        fields = {
            **dict.fromkeys(field for _, _, field in cls.model_schedules),
            **cls._unpack_options(**(options or {})),
            **celery_entries.message(**entry),
        }
        # Last: nothing is made for an entry that is refused.
        row, field = cls.to_model_schedule(schedule)
        fields[field] = row
        if field == "clocked":
            fields["one_off"] = True
        return fields

    @classmethod
    def _unpack_options(cls, **options: object) -> dict[str, object]:
        return celery_entries.options(options).columns

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name} {self.task}(*{self.args}, **{self.kwargs}) {self.schedule}>"


def store_entry(name: str, fields: dict[str, object], extra: dict[str, object]) -> PeriodicTask:
    """Make the task `name` or bring it to these fields, and leave it alone if it has them.

    `extra`: options of its messages for which it has no column. Raises `ValidationError` naming what is wrong.
    """
    PeriodicTask(name=name, **fields).clean_fields()
    using = router.db_for_write(PeriodicTask)
    found = task_lookup.find(using, name)
    row = None if found is None else PeriodicTask.objects.filter(pk=found[0]).first()
    if row is not None and row.clocked_id is not None and fields.get("clocked") is None:
        # It was one-off because it was clocked, and the schedule that it has now would run once.
        fields = {"one_off": False, **fields}
    if row is None or any(getattr(row, key) != value for key, value in fields.items()):
        name = task_lookup.free_name(using, name) if row is None else row.name
        row = PeriodicTask.objects.update_or_create(name=name, defaults=fields)[0]
    using = row._state.db or router.db_for_write(PeriodicTask)
    if schema.complete(using):
        options = TaskOptions.objects.using(using).filter(pk=row.pk).first()
        if (options.extra if options else "{}") != (text := json.dumps(extra)):
            TaskOptions.objects.using(using).update_or_create(task=row, defaults={"extra": text})
    return row


def _schedule(model: PeriodicTask) -> schedules.BaseSchedule:
    try:
        schedule: schedules.BaseSchedule | None = model.schedule
    except (schedules.ParseException, ValueError):
        crontab = getattr(model, "crontab", None)
        if crontab is None:
            raise
        return RuleSchedule(Cron(*crontab.value()))
    if schedule is None:
        raise ValueError("it has no schedule")
    return schedule


def _options(model: PeriodicTask) -> dict[str, object]:
    names = ("queue", "exchange", "routing_key", "priority")
    options = {name: getattr(model, name, None) for name in names}
    options["expires"] = getattr(model, "expires_", None)
    kept = {name: value for name, value in options.items() if value is not None and value != ""}
    kept["headers"] = {**free(loads(model.headers or "{}")), NAME_HEADER: model.name}
    return kept
