"""`onebeat explain NAME --at T`: what became of a task at a time, or will."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from onebeat.management.words import instant

NAME = "explain"


def add(commands: Any) -> Any:
    """Declare the subcommand."""
    parser = commands.add_parser(NAME, help="say why a task did or did not run at a time")
    parser.add_argument("name", metavar="NAME", help="the task's name")
    parser.add_argument("--at", required=True, metavar="T", help="ISO 8601; without a zone, in TIME_ZONE")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def handle(command: BaseCommand, *, name: str, at: str, database: str, **options: Any) -> None:
    """One sentence. Exit code 1 for a task that nobody knows, 2 for a time that is none."""
    from onebeat.errors import UnknownTask
    from onebeat.queries.explain import explain

    when: datetime = instant("--at", at)
    try:
        verdict = explain(database, name, when)
    except UnknownTask as error:
        raise CommandError(str(error), returncode=1) from error
    if options["json"]:
        found = {"kind": verdict.kind, "sentence": verdict.sentence, "facts": verdict.facts}
        command.stdout.write(json.dumps(found))
    else:
        command.stdout.write(verdict.sentence)
