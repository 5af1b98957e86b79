"""`onebeat explain NAME --at T`: what became of a task at a time, or will."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

from django.core.management.base import BaseCommand, CommandError

from onebeat.management.common import instant

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

    from onebeat.management.common import Subparsers

NAME = "explain"
NEEDS_TABLES = True


def add(commands: Subparsers) -> list[CommandParser]:
    """Declare the subcommand."""
    parser = commands.add_parser(NAME, help="say why a task did or did not run at a time")
    parser.add_argument("name", metavar="NAME", help="the task's name")
    parser.add_argument("--at", required=True, metavar="T", help="ISO 8601; without a zone, in TIME_ZONE")
    return [parser]


def handle(command: BaseCommand, *, name: str, at: str, database: str, as_json: bool, **options: object) -> None:
    """One sentence. Exit code 1 for a task that nobody knows, 2 for an invalid time."""
    from onebeat.errors import UnknownTask
    from onebeat.queries.explain import explain

    when: datetime = instant("--at", at)
    try:
        verdict = explain(database, name, when)
    except UnknownTask as error:
        raise CommandError(str(error), returncode=1) from error
    if as_json:
        found = {"kind": verdict.kind, "sentence": verdict.sentence, "facts": verdict.facts}
        command.stdout.write(json.dumps(found))
    else:
        command.stdout.write(verdict.sentence)
