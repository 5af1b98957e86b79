"""What a subcommand of `manage.py onebeat` is, and what several of them share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from django.core.management.base import CommandError

from onebeat.dispatch.celery.app import find
from onebeat.errors import UnknownApp
from onebeat.models.instants import to_utc

if TYPE_CHECKING:
    import argparse

    from django.core.management.base import CommandParser

    #: What `add_subparsers` of a command's parser returns.
    Subparsers = argparse._SubParsersAction[CommandParser]

#: The exit code for something that cannot be used: an app, a file, a database.
UNUSABLE = 2


class Subcommand(Protocol):
    """A module with one subcommand.

    `add` declares the subcommand and returns the parsers that take the options which all have (`--json`, `--database`,
    `--verbosity`). `handle` gets the command, for its output, and the options by name; it raises `CommandError` with
    the exit code. With `NEEDS_TABLES` it is called only where all tables of onebeat are there.
    """

    @property
    def NAME(self) -> str: ...
    @property
    def NEEDS_TABLES(self) -> bool: ...
    def add(self, commands: Subparsers, /) -> Sequence[CommandParser]: ...
    @property
    def handle(self) -> Callable[..., None]: ...


def celery_app(name: str | None) -> Any:
    """The Celery app that `--app` names, else the current one, with its tasks registered. Exit code 2 if there is
    none.
    """
    try:
        return find(name, with_tasks=True)
    except UnknownApp as error:
        raise CommandError(str(error), returncode=UNUSABLE) from error


def instant(option: str, text: str) -> datetime:
    """An ISO 8601 time as an instant; one without a zone is of TIME_ZONE. Exit code 2 for a text that is no time."""
    try:
        found = datetime.fromisoformat(text)
        return to_utc(found) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        hint = "write it as 2026-03-28T09:00:00Z"
        raise CommandError(f"{option}: {text!r} is no time; {hint}", returncode=UNUSABLE) from error
