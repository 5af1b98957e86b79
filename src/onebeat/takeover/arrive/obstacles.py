"""What stands in the way of a take-over, as values that say in words what a person can do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.core.management.base import CommandError

from onebeat.errors import OnebeatError


class CannotAdopt(OnebeatError, CommandError):
    """Something in the database stands in the way; nothing of it was changed. The message has a line for each."""

    def __init__(self, obstacles: Iterable[object]) -> None:
        head = "This database cannot be taken over as it is. Nothing was changed."
        super().__init__("\n  ".join([head, *map(str, obstacles)]))


@dataclass(frozen=True, slots=True)
class Collision:
    """Rows of one value that cannot become one, since something that refers to them may hold each of them once."""

    table: str
    kind: str
    keys: Sequence[int]
    #: The value that they share, as text.
    value: str
    #: The column that refers to them, as table.column.
    column: str
    #: Whether the referring rows are parts of ours (Django's multi-table children), and not only unique.
    parts: bool

    def __str__(self) -> str:
        why = "holds parts of rows that would be dropped" if self.parts else "may hold each of them once"
        return (
            f"{self.table}: the rows {_joined(self.keys)} hold one value ({self.value}) and cannot become one, since "
            f"{self.column} {why}. Delete rows of {self.column.rpartition('.')[0]}, point them at another schedule, or "
            f"give one of the {self.kind} rows another value; then migrate again."
        )


@dataclass(frozen=True, slots=True)
class MoreCollisions:
    """Groups that are not named one by one because there are too many of them."""

    table: str
    count: int

    def __str__(self) -> str:
        return f"{self.table}: {self.count} groups more, for the same reason"


@dataclass(frozen=True, slots=True)
class DifferentReadings:
    """Rows that the database takes for one value although Celery read them differently."""

    table: str
    #: The keys of the rows that share a meaning, for each meaning.
    groups: Sequence[Sequence[int]]

    def __str__(self) -> str:
        rows = " and ".join(_joined(keys[:20]) for keys in self.groups)
        return (
            f"{self.table}: the rows {rows} hold one value to the database, and Celery read them differently. "
            "Delete the spaces at the end of their fields, or give one of them another value; then migrate again."
        )


@dataclass(frozen=True, slots=True)
class UnfilledColumn:
    """A column that the inserts of onebeat would leave empty although it must not be."""

    table: str
    column: str

    def __str__(self) -> str:
        return (
            f"{self.table}.{self.column} is NOT NULL without a default, and nothing here would fill it: give it a "
            "default, let it be NULL, or drop it"
        )


@dataclass(frozen=True, slots=True)
class MissingColumn:
    """A column that the recorded migrations have made and that is not there."""

    table: str
    column: str

    def __str__(self) -> str:
        return f"{self.table}.{self.column} is not there, although the migrations say so"


Obstacle = Collision | MoreCollisions | DifferentReadings | UnfilledColumn | MissingColumn


def _joined(keys: Iterable[object]) -> str:
    return ", ".join(map(str, keys))
