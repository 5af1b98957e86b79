"""The tables of another django-celery-beat database, in whatever state of its migrations they are.

Only columns that are there are asked for. The project's own models read them, so that values come as they come from the
project's own tables; their times are read as this project's settings say (`TIME_ZONE` of the alias is Django's way to
name another zone).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError
from django.db import DataError, Error, connections

from onebeat.errors import SourceUnavailable
from onebeat.importing.rows import Refused, Row, checked, crontab, read_row
from onebeat.models import PeriodicTask
from onebeat.models.task_rules import SCHEDULES

_PORTION = 500
_TASKS = PeriodicTask._meta.db_table
_FIELDS = tuple(
    field.name
    for field in PeriodicTask._meta.concrete_fields
    if not field.is_relation and field.name not in ("id", "name", "date_changed")
)
_MODELS: dict[str, Any] = {kind: PeriodicTask._meta.get_field(kind).related_model for kind in SCHEDULES}
#: What reading a value may raise that no column of its kind should hold.
_UNREADABLE = (DataError, ValueError, TypeError, ArithmeticError)
#: Of a database that is onebeat's: tasks that have more to them than django-celery-beat knows.
_OPTIONS = "onebeat_taskoptions"


class Tables:
    """The tables behind a Django database alias. Nothing is written to them."""

    def __init__(self, using: str) -> None:
        """Raises the database's error if it cannot be reached, LookupError if it has no tasks."""
        self._link: Any = connections[using]
        with self._link.cursor() as cursor:
            self._there = set(self._link.introspection.table_names(cursor))
        if _TASKS not in self._there:
            raise LookupError(f"the database {using!r} has no table {_TASKS}")
        columns = self._columns(_TASKS)
        self._names = ["pk", "name", *(name for name in _FIELDS if name in columns)]
        self._kinds = [kind for kind in SCHEDULES if f"{kind}_id" in columns]
        for kind in self._kinds:
            there = self._columns(_MODELS[kind]._meta.db_table)
            self._names += [f"{kind}_id", *(f"{kind}__{name}" for name in _MODELS[kind].VALUE if name in there)]
        # Until 2.1 a clocked schedule was switched off when it had run.
        self._switch = "clocked" in self._kinds and "enabled" in self._columns(_MODELS["clocked"]._meta.db_table)
        self._rows = PeriodicTask._base_manager.using(using).order_by("pk")

    def _columns(self, table: str) -> set[str]:
        with self._link.cursor() as cursor:
            return {column.name for column in self._link.introspection.get_table_description(cursor, table)}

    def count(self) -> int:
        """How many tasks there are."""
        return self._rows.count()

    def rows(self) -> Iterator[Row | Refused]:
        """One for each task, in the order of their keys. Raises `SourceUnavailable`."""
        rest = self._rows
        try:
            while keys := list(rest.values_list("pk", "name")[:_PORTION]):
                yield from self._portion(keys)
                rest = self._rows.filter(pk__gt=keys[-1][0])
        except Error as error:
            raise SourceUnavailable(str(error)) from error

    def _portion(self, keys: list[tuple[Any, str]]) -> Iterator[Row | Refused]:
        off, more = self._off([key for key, _ in keys]), self._with_options([key for key, _ in keys])
        for name, found in self._read(keys):
            if isinstance(found, Refused):
                yield found
            elif found["pk"] in more:
                yield Refused(name, f"it has a row in {_OPTIONS} there, which is not carried: make it here by hand")
            else:
                yield read_row(name, partial(self._row, found, found["pk"] in off))

    def _read(self, keys: list[tuple[Any, str]]) -> Iterator[tuple[str, Any]]:
        """Each task's name and values; one by one where there is one among them that cannot be read."""
        rows = self._rows.filter(pk__in=[key for key, _ in keys])
        try:
            yield from [(found["name"], found) for found in rows.values(*self._names)]
            return
        except _UNREADABLE:
            pass
        for key, name in keys:
            try:
                found = [(name, one) for one in rows.filter(pk=key).values(*self._names)]
            except _UNREADABLE as error:
                found = [(name, Refused(name, f"the row cannot be read: {error}"))]
            yield from found

    def _row(self, found: dict[str, Any], off: bool) -> Row:
        fields = {name: found[name] for name in _FIELDS if name in found}
        chosen = [kind for kind in self._kinds if found[f"{kind}_id"] is not None]
        if len(chosen) != 1:
            raise ValidationError(f"schedule: it has {' and '.join(chosen) or 'none'}; exactly one is needed")
        (kind,) = chosen
        model, notes = _MODELS[kind], []
        value = {name: found[f"{kind}__{name}"] for name in model.VALUE if f"{kind}__{name}" in found}
        if all(each is None for each in value.values()):
            raise ValidationError({kind: f"its row {found[f'{kind}_id']} is not there"})
        if kind == "crontab" and _OPTIONS not in self._there:
            schedule, note = crontab(value)
            notes.append(note)
        else:
            schedule = model(**value)
        if kind == "clocked" and not fields.get("one_off"):
            fields["one_off"] = True
            notes.append("made one-off: an instant comes once")
        if off and fields["enabled"]:
            fields["enabled"] = False
            notes.append("disabled: its clocked schedule was switched off, which is how it was kept that it had run")
        return checked(found["name"], fields, schedule, *notes)

    def _off(self, keys: list[object]) -> set[object]:
        return self._keys(
            f"SELECT t.id FROM {_TASKS} t JOIN {_MODELS['clocked']._meta.db_table} c ON c.id = t.clocked_id "
            f"WHERE NOT c.enabled AND t.id IN ({', '.join(['%s'] * len(keys))})",
            keys if self._switch else [],
        )

    def _with_options(self, keys: list[object]) -> set[object]:
        return self._keys(
            f"SELECT task_id FROM {_OPTIONS} WHERE task_id IN ({', '.join(['%s'] * len(keys))})",
            keys if _OPTIONS in self._there else [],
        )

    def _keys(self, sql: str, keys: list[object]) -> set[object]:
        if not keys:
            return set()
        with self._link.cursor() as cursor:
            cursor.execute(sql, keys)
            return {key for (key,) in cursor.fetchall()}
