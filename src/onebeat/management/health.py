"""`onebeat health`: whether what is due is being sent, as an exit code for probes."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

NAME = "health"


def add(commands: Any) -> Any:
    """Declare the subcommand."""
    parser = commands.add_parser(NAME, help="exit with 0 if what is due is being sent, else with 1")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def handle(command: BaseCommand, *, database: str, **options: Any) -> None:
    """The figures, and what is wrong. Exit code 1 if something is."""
    from onebeat.queries import health

    found = health.health(database)
    if options["json"]:
        command.stdout.write(json.dumps(found))
    else:
        for line in health.lines(found):
            command.stdout.write(line)
    if not found["healthy"]:
        raise CommandError("; ".join(found["problems"]), returncode=1)
