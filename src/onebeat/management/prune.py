"""`onebeat prune`: a whole pass of the retention now, instead of bit by bit beside the ticks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from django.core.management.base import BaseCommand

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

    from onebeat.management.common import Subparsers

NAME = "prune"
NEEDS_TABLES = True
_SIZE = 5000


def add(commands: Subparsers) -> list[CommandParser]:
    """Declare the subcommand."""
    parser = commands.add_parser(NAME, help="delete what is older than keep_days and keep_failed_days, now")
    parser.add_argument("--dry-run", action="store_true", help="count what would be deleted; change nothing")
    return [parser]


def handle(command: BaseCommand, *, database: str, dry_run: bool, as_json: bool, **options: object) -> None:
    """How many rows of each kind; progress on stderr."""
    from onebeat.conf import current
    from onebeat.db import database_clock
    from onebeat.store import retention

    keep = retention.Keep.of(current(), database_clock.now(database))
    if dry_run:
        sums = retention.count(database, keep)
    else:
        sums = {}
        for sums in retention.whole(database, keep, _SIZE):
            if command.stderr.isatty():
                command.stderr.write(f"\r{sums['occurrences']} occurrences", ending="")
                command.stderr.flush()
    if as_json:
        command.stdout.write(json.dumps({"dry_run": dry_run, **sums}))
        return
    parts = ", ".join(f"{number} {name}" for name, number in sums.items())
    command.stdout.write(f"{'would delete' if dry_run else 'deleted'}: {parts}")
