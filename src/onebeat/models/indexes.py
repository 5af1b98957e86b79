"""An index of some rows of a table, where the database has such: none on MariaDB and MySQL."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.backends.ddl_references import Statement


class Partial(models.Index):
    """`where`: which rows are in it.

    Not Django's `condition`: where the database cannot keep it, Django makes an index of all rows, which each write
    would pay for, and warns.
    """

    def __init__(self, *args: Any, where: models.Q | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.where = where

    def deconstruct(self) -> tuple[str, Any, dict[str, Any]]:
        """The path and the arguments from which a migration makes the index again, its condition among them."""
        path, args, kwargs = super().deconstruct()
        return path, args, {**kwargs, "where": self.where}

    def create_sql(self, model: Any, schema_editor: Any, using: str = "", **kwargs: Any) -> Statement:
        """The statement that creates the index; one that does nothing where the database has no partial indexes."""
        if not schema_editor.connection.features.supports_partial_indexes:
            return Statement("DO 0")
        plain = models.Index(fields=self.fields, name=self.name, condition=self.where)
        return plain.create_sql(model, schema_editor, using, **kwargs)

    def remove_sql(self, model: Any, schema_editor: Any, **kwargs: Any) -> Any:
        """The statement that drops the index; one that does nothing where the database has no partial indexes."""
        if not schema_editor.connection.features.supports_partial_indexes:
            return Statement("DO 0")
        return super().remove_sql(model, schema_editor, **kwargs)
