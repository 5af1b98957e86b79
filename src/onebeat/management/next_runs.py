"""`onebeat next [NAME]`: what is coming, from the database."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

NAME = "next"


def add(commands: Any) -> Any:
    """Declare the subcommand."""
    parser = commands.add_parser(NAME, help="show what is coming, for one task or for all")
    parser.add_argument("name", nargs="?", metavar="NAME", help="the task's name; without it, the next of all tasks")
    parser.add_argument("--count", type=int, default=10, metavar="N", help="how many (default: 10)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def handle(command: BaseCommand, *, name: str | None, count: int, database: str, **options: Any) -> None:
    """A line for each. Exit code 1 for a task that nobody knows, 2 for a count below 1."""
    from onebeat.store import coming

    if count < 1:
        raise CommandError(f"--count: must be 1 or more, not {count}", returncode=2)
    try:
        found = coming.coming(database, name, count)
    except LookupError as error:
        raise CommandError(str(error.args[0]), returncode=1) from error
    if options["json"]:
        command.stdout.write(json.dumps({"next": found}))
        return
    for one in found:
        command.stdout.write(f"{one['due_at']}  {one['task']}" + (f"  ({one['note']})" if one["note"] else ""))
    if not found:
        command.stdout.write("nothing is coming")
