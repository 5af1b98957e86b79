"""`onebeat check`: what `manage.py check` finds about onebeat and its databases, and the namespace of task ids."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from django.core import checks
from django.core.management.base import BaseCommand, CommandError

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

    from onebeat.management.common import Subparsers

NAME = "check"
NEEDS_TABLES = True


def add(commands: Subparsers) -> list[CommandParser]:
    """Declare the subcommand."""
    parser = commands.add_parser(NAME, help="check onebeat's settings and database")
    parser.add_argument(
        "--renew-namespace",
        action="store_true",
        help="after copying a database: give the copy task ids of its own, from the next occurrence on",
    )
    return [parser]


def handle(command: BaseCommand, *, database: str, renew_namespace: bool, as_json: bool, **options: object) -> None:
    """A line for each finding. Exit code 1 if one of them is an error."""
    from onebeat.store import occurrences

    namespace = occurrences.renew_namespace(database) if renew_namespace else occurrences.namespace(database)
    found = [one for one in checks.run_checks(databases=[database]) if str(one.id).startswith("onebeat.")]
    if as_json:
        lines = [{"id": one.id, "level": one.level, "message": one.msg, "hint": one.hint} for one in found]
        command.stdout.write(json.dumps({"namespace": str(namespace), "renewed": renew_namespace, "found": lines}))
    else:
        for one in found:
            command.stdout.write(f"{one.id}: {one.msg}" + (f" ({one.hint})" if one.hint else ""))
        command.stdout.write(f"task ids are made in the namespace {namespace}{', which is new' * renew_namespace}")
    if any(one.is_serious() and not one.is_silenced() for one in found):
        raise CommandError("something must be changed", returncode=1)
