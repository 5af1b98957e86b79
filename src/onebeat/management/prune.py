"""`onebeat prune`: a whole pass of the retention now, instead of bit by bit beside the ticks."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand

NAME = "prune"
_SIZE = 5000


def add(commands: Any) -> Any:
    """Declare the subcommand."""
    parser = commands.add_parser(NAME, help="delete what is older than keep_days and keep_failed_days, now")
    parser.add_argument("--dry-run", action="store_true", help="count what would be deleted; change nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def handle(command: BaseCommand, *, database: str, dry_run: bool, **options: Any) -> None:
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
    if options["json"]:
        command.stdout.write(json.dumps({"dry_run": dry_run, **sums}))
        return
    parts = ", ".join(f"{number} {name}" for name, number in sums.items())
    command.stdout.write(f"{'would delete' if dry_run else 'deleted'}: {parts}")
