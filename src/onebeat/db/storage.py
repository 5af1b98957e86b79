"""How PostgreSQL keeps a table: room in its pages, and when autovacuum comes by. Other databases have no such settings:
InnoDB writes a row in its place and purges by itself.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation


class SetStorage(Operation):
    """Set storage parameters of a table; backwards, its server's defaults hold again. Rows are not written anew."""

    reduces_to_sql = True
    reversible = True

    def __init__(self, table: str, parameters: dict[str, str]) -> None:
        self.table = table
        self.parameters = parameters

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        """As Django's."""
        return type(self).__name__, [self.table, self.parameters], {}

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Models know nothing of it."""

    def database_forwards(self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, *states: Any) -> None:
        """Set them."""
        self._alter(schema_editor, f"SET ({', '.join(f'{name} = {value}' for name, value in self.parameters.items())})")

    def database_backwards(self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, *states: Any) -> None:
        """Forget them."""
        self._alter(schema_editor, f"RESET ({', '.join(self.parameters)})")

    def describe(self) -> str:
        """As Django's."""
        return f"Set storage parameters of {self.table}"

    def _alter(self, schema_editor: BaseDatabaseSchemaEditor, what: str) -> None:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"ALTER TABLE {schema_editor.quote_name(self.table)} {what}")
