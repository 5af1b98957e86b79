"""Indexes and constraints that Django has no class for: an index of some rows, one row for each value."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db import models
from django.db.backends.ddl_references import Statement

M = TypeVar("M", bound=models.Model)


class Partial(models.Index):
    """An index of some rows of a table, where the database has such: none on MariaDB and MySQL.

    `where`: which rows are in it.

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


class OneRow(models.BaseConstraint):
    """A unique constraint whose value a new object may repeat, since saving that adopts the row.

    Not a subclass of Django's: REST frameworks refuse whatever breaks one of those before it is saved.
    """

    def __init__(self, unique: models.UniqueConstraint) -> None:
        super().__init__(name=unique.name)
        self.fields = unique.fields  # Django's `validate_constraints` asks for them
        for name in ("constraint_sql", "create_sql", "remove_sql", "validate", "clone"):  # a clone is for migrations
            setattr(self, name, getattr(unique, name))


def one_row_for_each_value(model: type[M]) -> type[M]:
    """A class decorator: everybody finds the model's unique constraint as a `OneRow`, but for migrations, which take
    unique_together from the class's own words and clones of constraints.
    """
    meta = model._meta
    named = [models.UniqueConstraint(fields=one, name=f"onebeat_{meta.model_name}") for one in meta.unique_together]
    unique = [one for one in meta.constraints if isinstance(one, models.UniqueConstraint)]
    meta.constraints = [OneRow(one) for one in (*named, *unique)]
    meta.unique_together = ()
    return model
