"""What people have set otherwise than code says, and the way back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from onebeat.core import keys
from onebeat.db import bulk_rows, database_clock
from onebeat.declare import stored
from onebeat.declare.sync import declared_values
from onebeat.errors import InvalidArgument
from onebeat.models import Declared, PeriodicTask
from onebeat.queries import task_lookup
from onebeat.verbs import records
from onebeat.verbs.base import alias_of, do, who_is


@dataclass(frozen=True, slots=True)
class Override:
    """A field of a declared task that a person has set otherwise than code says.

    Values are plain: what JSON can hold, a schedule as its kind and value. Field "deleted" (code: False, here: True): a
    person has deleted the task.
    """

    field: str
    code: object
    here: object


def overrides(task: str | PeriodicTask, *, using: str | None = None) -> list[Override]:
    """What a person has set otherwise than code says, field by field. It stays over every sync until it is dropped.

    Empty for a task that code does not declare. Two statements, and one for each kind of schedule.
    """
    return overridden([_name(task)], using=using).get(_name(task), [])


def overridden(names: Iterable[str], *, using: str | None = None) -> dict[str, list[Override]]:
    """The same for many tasks by name, in as many statements; those that have none are left out."""
    alias, names = alias_of(using), list(names)
    found: dict[str, list[Override]] = {}
    declared = {
        row.name: row for part in bulk_rows.portions(names) for row in _declarations(alias).filter(name__in=part)
    }
    for name in names:
        if name not in declared and (row := _of_row(alias, name)) is not None:
            declared[name] = row
    here = stored.read(alias, [row.name for row in declared.values()])
    for asked, row in declared.items():
        if row.name not in here:
            found[asked] = [Override("deleted", False, True)]
            continue
        values, code = stored.values_of(*here[row.name]), declared_values(row) or {}
        differ = [Override(name, value, values[name]) for name, value in code.items() if values[name] != value]
        if differ:
            found[asked] = differ
    return found


def drop_override(task: str | PeriodicTask, field: str, *, by: object = None, using: str | None = None) -> bool:
    """Set a field of a declared task to what code says. Returns whether there was anything to set.

    `field`: as in `Override`; "deleted" makes the task again. Recorded with `by` as an action. Raises `InvalidArgument`
    for a task that code does not declare, or a field that it does not name.
    """
    name = _name(task)

    def work(alias: str) -> bool:
        one = _declarations(alias).filter(name=name).first() or _of_row(alias, name)
        code = declared_values(one)
        if one is None or code is None:
            raise InvalidArgument(f"task: {name!r} is not declared in code")
        found = stored.read(alias, [one.name], lock=True).get(one.name)
        if field == "deleted":
            if found is not None:
                return False
            made = stored.create(alias, one.name, code)
            one.task = made.pk
            one.save(using=alias)
        elif field not in code:
            raise InvalidArgument(f"field: code says nothing of {field!r}; it names {', '.join(sorted(code))}")
        elif found is None or stored.values_of(*found)[field] == code[field]:
            return False
        else:
            made = found[0]
            stored.put(alias, made, {field: code[field]})
        records.record(alias, "sync", {made.pk: name}, who_is(by), "override dropped", field, database_clock.now(alias))
        return True

    return do(using, work)


def _declarations(using: str) -> Any:
    return Declared.objects.using(using).filter(removed_at=None)


def _of_row(using: str, name: str) -> Declared | None:
    """The declaration whose row has this name, which is not the declared one but has a suffix."""
    if not keys.may_be_suffixed(name):
        return None
    rows = task_lookup.tasks(using).filter(name=name).values("pk")
    return next((one for one in _declarations(using).filter(task__in=rows) if keys.has(name, one.name)), None)


def _name(task: str | PeriodicTask) -> str:
    return task if isinstance(task, str) else task.name
