"""One task on its way here, read and checked, or the reason why it cannot come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from celery import schedules
from django.core.exceptions import ValidationError

from onebeat.core.recurrence.celery_dialect import read_taken_over
from onebeat.core.recurrence.fields import KINDS, canonical_field
from onebeat.dispatch.celery.schedules import TzAwareCrontab, clocked
from onebeat.importing import celery_entries
from onebeat.models import CrontabSchedule, PeriodicTask
from onebeat.models.instants import from_utc, to_utc
from onebeat.models.schedule_value import ScheduleValue

RUN_STATE = ("last_run_at", "total_run_count")


@dataclass(frozen=True, slots=True)
class Refused:
    """A task that cannot be carried, and why, in one line."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Row:
    """A task that can be carried. `fields` are the task's own, its run state among them; `value` is its schedule's, by
    field. Both are as they would be stored. `notes`: what a person should know about it.
    """

    name: str
    fields: Mapping[str, object]
    model: type[ScheduleValue]
    value: Mapping[str, object]
    notes: tuple[str, ...] = ()
    #: More options of the message, for `TaskOptions.extra`.
    extra: Mapping[str, object] = field(default_factory=dict)

    def schedule(self) -> ScheduleValue:
        """A new object of the schedule, not saved."""
        return self.model(**self.value)

    def task(self, schedule: ScheduleValue) -> PeriodicTask:
        """A new object of the task on that schedule, not saved."""
        return PeriodicTask(name=self.name, **self.fields, **{self.model.KIND: schedule})

    def __str__(self) -> str:
        return f"{self.name}: {self.fields['task']}, {self.schedule()}"


def checked(name: str, fields: Mapping[str, object], schedule: ScheduleValue, *notes: str) -> Row:
    """The row of a task, brought to the form in which it is stored. Raises `ValidationError` for what a task may not
    hold.
    """
    schedule.clean_value()
    task = PeriodicTask(name=name, **fields, **{schedule.KIND: schedule})
    task.clean_fields()
    clean = {field: getattr(task, field) for field in fields}
    value = dict(zip(schedule.VALUE, schedule.value(), strict=True))
    return Row(task.name, clean, type(schedule), value, tuple(filter(None, notes)))


def read_row(name: str, make: Callable[[], Row]) -> Row | Refused:
    """What `make` makes, or why it cannot."""
    try:
        return make()
    except ValidationError as error:
        return Refused(name, one_line(error))
    except Exception as error:  # whatever a stranger's values, and the objects made of them, raise
        return Refused(name, f"it cannot be read: {type(error).__name__}: {error}")


def one_line(error: ValidationError) -> str:
    """An error as one line that names each field."""
    if not hasattr(error, "error_dict"):
        return "; ".join(error.messages)
    found = []
    for name, messages in error.message_dict.items():
        # The rules name the field themselves.
        found += [text if text.startswith(f"{name}:") else f"{name}: {text}" for text in messages]
    return "; ".join(found)


def of_entry(
    name: str, entry: Mapping[str, Any], schedule: ScheduleValue, *notes: str, last_run_at: Any = None, runs: Any = 0
) -> Row:
    """The row of an entry of Celery's on a schedule that was read from it.

    Raises `ValidationError` naming each key, option or value that has no place in a task.
    """
    # Of the name, Celery takes the key.
    given = {key: value for key, value in entry.items() if key not in ("name", "schedule", "options")}
    options = celery_entries.options(entry.get("options") or {})
    fields = {
        "one_off": schedule.KIND == "clocked",
        "expires": None,
        **options.columns,
        **celery_entries.message(**given),
    }
    run_state = {"last_run_at": last_run_at, "total_run_count": runs or 0}
    row = checked(name, {**fields, **run_state}, schedule, *notes, *options.notes)
    return replace(row, extra=options.extra)


def of_celery(given: object) -> tuple[ScheduleValue, str]:
    """The schedule, not saved, of one of Celery's, and a note. Raises `ValidationError`."""
    schedule, model, kind = celery_entries.kind_of(given)
    own = {schedules.crontab, schedules.schedule, schedules.solar, TzAwareCrontab, clocked}
    known = next(each for each in type(schedule).__mro__ if each in own)
    for name in ("is_due", "remaining_estimate", "remaining_delta"):
        if getattr(type(schedule), name, None) is not getattr(known, name, None):
            raise ValidationError({"schedule": f"{schedule!r}: its class has its own {name}, which no row can hold"})
    value = model.value_of(schedule)
    if kind == "clocked":
        value = {"clocked_time": from_utc(to_utc(value["clocked_time"]))}
    return crontab(value) if kind == "crontab" else (model(**value), celery_entries.relative_note(schedule))


def crontab(given: Mapping[str, Any]) -> tuple[CrontabSchedule, str]:
    """The crontab, not saved, that Celery makes of these fields, and a note where the text says something else here.

    Raises `ValidationError` for what Celery cannot read: such a task never ran.
    """
    texts = {
        name: text if isinstance(text := given.get(name, "*"), str) else canonical_field(name, text) for name in KINDS
    }
    reading = read_taken_over(**texts, tz=given.get("timezone") or "UTC")
    if reading.cron is None:
        raise ValidationError(f"{reading.why}; so it never ran")
    fields = {name: getattr(reading.cron, name) for name in KINDS}
    return CrontabSchedule(**fields, timezone=reading.cron.tz), reading.why
