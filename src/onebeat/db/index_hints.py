"""Which index MySQL and MariaDB read a table along.

Django has no way to say so: its query names each table by an object in `Query.alias_map`, and this one puts another in
its place, whose SQL ends with the hint. Written by hand, the statement would have to convert each column itself.
"""

from __future__ import annotations

from typing import TypeVar

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.models.sql.compiler import SQLCompiler
from django.db.models.sql.datastructures import BaseTable

M = TypeVar("M", bound=models.Model)


class _Indexed(BaseTable):
    def __init__(self, table: str, index: str) -> None:
        super().__init__(table, table)
        self.index = index

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[str | int, ...]]:
        sql, params = super().as_sql(compiler, connection)
        return f"{sql} FORCE INDEX ({connection.ops.quote_name(self.index)})", params


def along_index(using: str, rows: QuerySet[M], index: str) -> QuerySet[M]:
    """The same rows, read along `index` where the planner would often choose another way; elsewhere `rows` itself."""
    if connections[using].vendor == "mysql":
        table = rows.model._meta.db_table
        rows.query.alias_map[table] = _Indexed(table, index)
    return rows
