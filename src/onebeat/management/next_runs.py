"""`onebeat next [NAME]`: what is coming, from the database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from django.core.management.base import BaseCommand, CommandError

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

    from onebeat.management.common import Subparsers

NAME = "next"
NEEDS_TABLES = True


def add(commands: Subparsers) -> list[CommandParser]:
    """Declare the subcommand."""
    parser = commands.add_parser(NAME, help="show what is coming, for one task or for all")
    parser.add_argument("name", nargs="?", metavar="NAME", help="the task's name; without it, the next of all tasks")
    parser.add_argument("--count", type=int, default=10, metavar="N", help="how many (default: 10)")
    return [parser]


def handle(
    command: BaseCommand, *, name: str | None, count: int, database: str, as_json: bool, **options: object
) -> None:
    """A line for each. Exit code 1 for a task that nobody knows, 2 for a count below 1."""
    from onebeat.db import database_clock
    from onebeat.errors import UnknownTask
    from onebeat.queries import task_lookup, upcoming

    if count < 1:
        raise CommandError(f"--count: must be 1 or more, not {count}", returncode=2)
    try:
        of = None if name is None else dict([task_lookup.named(database, name)])
    except UnknownTask as error:
        raise CommandError(str(error), returncode=1) from error
    found = upcoming.upcoming(database, of, count, None, database_clock.now(database))
    if as_json:
        lines = [
            {
                "task": one.task,
                "due_at": one.due_at.isoformat(),
                "leaves_at": one.leaves_at.isoformat(),
                "skipped": one.skipped,
                "note": one.note,
            }
            for one in found
        ]
        command.stdout.write(json.dumps({"next": lines}))
        return
    for one in found:
        notes = ", ".join(filter(None, (one.skipped, one.note)))
        command.stdout.write(f"{one.due_at.isoformat()}  {one.task}" + (f"  ({notes})" if notes else ""))
    if not found:
        command.stdout.write("nothing is coming")
