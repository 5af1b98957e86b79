"""Many rows in one statement, with as few parameters as the database allows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

K = TypeVar("K")


Row = Sequence[Any]


#: How many rows one statement names.
PORTION = 1000


def portions(ids: Iterable[K]) -> Iterator[list[K]]:
    """Keys in order, in parts of one statement each."""
    ordered = sorted(ids)  # type: ignore[type-var]
    for start in range(0, len(ordered), PORTION):
        yield ordered[start : start + PORTION]


def recordset(link: BaseDatabaseWrapper, columns: Mapping[str, str], rows: Sequence[Row]) -> tuple[str, str]:
    """PostgreSQL: `rows` as one source of rows named `v`, with its one parameter (JSON).

    `columns` maps each to its type.
    """
    types = ", ".join(f"{link.ops.quote_name(name)} {kind}" for name, kind in columns.items())
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    return f"json_to_recordset(%s) AS v({types})", json.dumps(found, default=str)


def parts(link: BaseDatabaseWrapper, rows: Sequence[Row], width: int) -> Iterator[Sequence[Row]]:
    """`rows` in parts that stay below the parameters one statement may have."""
    step = max(1, (link.features.max_query_params or 30_000) // width)
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def inserts(
    link: BaseDatabaseWrapper,
    table: str,
    columns: Sequence[str] | Mapping[str, str],
    rows: Sequence[Row],
    alike: Mapping[str, tuple[str, object]] = MappingProxyType({}),
) -> Iterator[tuple[str, list[Any]]]:
    """The statements that insert `rows`, each with its parameters. A clause such as ON CONFLICT may be appended.

    `columns` may map each to its PostgreSQL type: then one statement is enough there, and what all rows have alike goes
    in it once. `alike`: more columns, each with its PostgreSQL type and the value that all rows have.
    """
    q = link.ops.quote_name
    if link.vendor == "postgresql" and isinstance(columns, Mapping) and len(rows) > 1:
        columns, rows, same_in_all = _parted(columns, rows)
        alike = {**alike, **same_in_all}
    names = ", ".join(map(q, columns))
    into = f"INSERT INTO {q(table)} ({', '.join(map(q, [*columns, *alike]))})"
    same = [value for _, value in alike.values()]
    if link.vendor == "postgresql" and isinstance(columns, Mapping):
        source, param = recordset(link, columns, rows)
        found = ", ".join([names, *(f"%s::{kind}" for kind, _ in alike.values())])
        yield f"{into} SELECT {found} FROM {source}", [*same, param]
        return
    width = len(columns) + len(same)
    one = "(" + ", ".join(["%s"] * width) + ")"
    for part in parts(link, rows, width):
        params = [value for row in part for value in (*row, *same)]
        yield f"{into} VALUES {', '.join([one] * len(part))}", params


def _parted(
    columns: Mapping[str, str], rows: Sequence[Row]
) -> tuple[Mapping[str, str], Sequence[Row], dict[str, tuple[str, object]]]:
    """The columns in which rows differ (one at least), those parts of the rows, and the other columns with the value
    that all have.
    """
    parts = dict(zip(columns, zip(*rows, strict=True), strict=True))
    same = {name: (columns[name], part[0]) for name, part in parts.items() if part.count(part[0]) == len(rows)}
    differ = {name: kind for name, kind in columns.items() if name not in same} or dict([next(iter(columns.items()))])
    if len(differ) == len(columns):
        return columns, rows, {}
    kept = {name: value for name, value in same.items() if name not in differ}
    return differ, list(zip(*(parts[name] for name in differ), strict=True)), kept


def insertable(using: str, instances: Sequence[models.Model]) -> tuple[dict[str, str], list[list[object]]]:
    """Columns with their types, and values, to insert new instances of one model with.

    The first instance decides which columns are inserted: those that it leaves to the database's default are left out.
    """
    link, first = connections[using], instances[0]
    fields: list[Any] = []
    template: list[object] = []
    for field in first._meta.local_concrete_fields:
        value: object = field.pre_save(first, True)
        if not (hasattr(value, "as_sql") or (field.primary_key and value is None)):
            fields.append(field)
            template.append(field.get_db_prep_save(value, link))
    attributes = [(field, field.attname, getattr(first, field.attname)) for field in fields]
    rows = [template]
    for instance in instances[1:]:
        row, given = list(template), instance.__dict__
        for number, (field, name, value) in enumerate(attributes):
            if getattr(field, "auto_now", False):
                given[name] = value
            elif given[name] != value:
                row[number] = field.get_db_prep_save(field.pre_save(instance, True), link)
        rows.append(row)
    return {field.column: field.db_type(link) for field in fields}, rows
