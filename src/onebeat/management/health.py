"""`onebeat health`: whether what is due is being sent, as an exit code for probes."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

from django.core.management.base import BaseCommand, CommandError

from onebeat.core.text import shown

if TYPE_CHECKING:  # the models are loaded when a command is handled
    from django.core.management.base import CommandParser

    from onebeat.management.common import Subparsers
    from onebeat.queries.health import Health

NAME = "health"
NEEDS_TABLES = True
#: What each problem's code means.
_SENTENCES = {
    "no_scheduler": "no scheduler is at work",
    "starting": "the schedulers at work have not reported yet whether they can send",
    "broker_unavailable": "the broker does not answer",
    "broker_refuses": "the broker answers and accepts no message",
    "standby": "the schedulers stand by because another beat sends the same tasks",
    "classic": "a scheduler in classic mode is at work, which does not report whether it can send",
    "late": "the oldest due task is {lag_seconds:.1f} s late",
}


def add(commands: Subparsers) -> list[CommandParser]:
    """Declare the subcommand."""
    parser = commands.add_parser(NAME, help="exit with 0 if what is due is being sent, else with 1")
    return [parser]


def handle(command: BaseCommand, *, database: str, as_json: bool, **options: object) -> None:
    """The figures, and what is wrong. Exit code 1 if something is."""
    from onebeat.queries.health import health

    found = health(database)
    if as_json:
        command.stdout.write(json.dumps(found))
    else:
        for line in _lines(found):
            command.stdout.write(line)
    if not found["healthy"]:
        raise CommandError("; ".join(_problems(found)), returncode=1)


def _problems(found: Health) -> list[str]:
    """A sentence for each thing that is wrong."""
    lines = [_SENTENCES[code].format(**found) for code in found["problems"]]
    if not found["able"] and found["able_until"]:
        lines[0] += f", nothing has been sent since {shown(datetime.fromisoformat(found['able_until']))}"
    return lines


def _lines(found: Health) -> list[str]:
    return [
        "healthy" if found["healthy"] else "not healthy",
        f"{found['schedulers']} schedulers at work, {found['able']} of them able to send",
        f"{found['due']} tasks due, the oldest {found['lag_seconds']:.1f} s late",
        f"{found['quarantined']} tasks quarantined, {found['failed_publishes']} publishes failed",
        f"clocks differ from the database's by {found['largest_skew_ms']} ms at most",
        *([found["paused"]] if found["paused"] else []),
    ]
