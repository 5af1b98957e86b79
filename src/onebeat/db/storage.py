"""What tables take, and how PostgreSQL keeps them: room in their pages, when autovacuum comes by. Others have no such
settings: InnoDB writes a row in its place and purges by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation


class SetStorage(Operation):
    """Set storage parameters of a table; backwards, its server's defaults hold again. Rows are not written anew."""

    reduces_to_sql = True
    reversible = True

    def __init__(self, table: str, parameters: dict[str, str]) -> None:
        self.table = table
        self.parameters = parameters

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        """The arguments from which a migration makes the operation again."""
        return type(self).__name__, [self.table, self.parameters], {}

    def state_forwards(self, app_label: str, state: object) -> None:
        """Change nothing: models do not know storage parameters."""

    def database_forwards(self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, *states: object) -> None:
        """Set the parameters, on PostgreSQL."""
        self._alter(schema_editor, f"SET ({', '.join(f'{name} = {value}' for name, value in self.parameters.items())})")

    def database_backwards(self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, *states: object) -> None:
        """Reset the parameters to the server's defaults, on PostgreSQL."""
        self._alter(schema_editor, f"RESET ({', '.join(self.parameters)})")

    def describe(self) -> str:
        """The line that `migrate --plan` prints."""
        return f"Set storage parameters of {self.table}"

    def _alter(self, schema_editor: BaseDatabaseSchemaEditor, what: str) -> None:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"ALTER TABLE {schema_editor.quote_name(self.table)} {what}")


@dataclass(frozen=True, slots=True)
class Size:
    """What a table takes; None: this database does not say. The rows are an estimate, but on SQLite."""

    rows: int | None
    #: With its indexes.
    bytes: int | None
    #: Versions of rows that wait for vacuum.
    dead_rows: int | None


_SIZES = {
    "postgresql": "SELECT relname, n_live_tup, pg_total_relation_size(relid), n_dead_tup FROM pg_stat_user_tables"
    " WHERE relid = ANY (SELECT to_regclass(quote_ident(name)) FROM unnest(%s::text[]) AS t(name))",
    "mysql": "SELECT table_name, table_rows, data_length + index_length, NULL FROM information_schema.tables"
    " WHERE table_schema = DATABASE() AND FIND_IN_SET(table_name, %s)",
}


def sizes(using: str, tables: Sequence[str]) -> dict[str, Size]:
    """What these tables take, by name."""
    link = connections[using]
    with link.cursor() as cursor:
        if link.vendor in _SIZES:
            cursor.execute(_SIZES[link.vendor], [list(tables) if link.vendor == "postgresql" else ",".join(tables)])
            known = {name: Size(*map(_whole, figures)) for name, *figures in cursor.fetchall()}
            return {name: known.get(name, Size(None, None, None)) for name in tables}
        found = {}
        for name in tables:
            cursor.execute(f"SELECT COUNT(*) FROM {link.ops.quote_name(name)}")
            found[name] = Size(cursor.fetchone()[0], None, None)
        return found


def _whole(figure: Any) -> int | None:
    return None if figure is None else int(figure)
