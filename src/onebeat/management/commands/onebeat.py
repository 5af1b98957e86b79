"""`manage.py onebeat ...`: run a scheduler, look at what schedulers do, and take over, import or give back tasks."""

from __future__ import annotations

import io
from argparse import SUPPRESS
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper
from django.db import router

from onebeat.management import (
    adopt,
    check,
    explain,
    handback,
    health,
    importing,
    next_runs,
    prune,
    run,
    status,
    sync,
)
from onebeat.management.common import UNUSABLE, Subcommand

#: In the order in which `--help` lists them.
_SUBCOMMANDS: tuple[Subcommand, ...] = (
    *(run, status, health, next_runs, explain, check, sync, prune),
    *(adopt, importing, handback),
)


class Command(BaseCommand):
    """One command with subcommands; each has `--help` and, where it prints something, `--json`."""

    help = "Run an onebeat scheduler, or look at what the schedulers do."

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
        for subcommand in _SUBCOMMANDS:
            for one in subcommand.add(commands):
                if subcommand.NAME != run.NAME:
                    one.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
                one.add_argument("--database", help="the database alias (default: where the router puts the tasks)")
                # Django's own stands before the subcommand, where nobody looks for it.
                one.add_argument(
                    *("-v", "--verbosity"),
                    type=int,
                    choices=(0, 1, 2, 3),
                    default=SUPPRESS,
                    help="0 prints errors and what --json asks for, and nothing else; 2 also what stays (default: 1)",
                )

    def handle(self, *args: Any, **options: Any) -> None:
        from onebeat.models import TaskState

        options["database"] = options["database"] or router.db_for_write(TaskState)
        name = options.pop("command")
        subcommand = next(one for one in _SUBCOMMANDS if name == one.NAME)
        if options["verbosity"] == 0 and not options.get("as_json"):
            self.stdout = OutputWrapper(io.StringIO())
        if subcommand.NEEDS_TABLES:
            _require_tables(options["database"])
        subcommand.handle(self, **options)


def _require_tables(using: str) -> None:
    """Exit code 2 where `migrate` has not been: what follows would end in a raw database error."""
    from onebeat.db import schema

    try:
        schema.require(using)
    except ImproperlyConfigured as error:
        raise CommandError(str(error), returncode=UNUSABLE) from error
