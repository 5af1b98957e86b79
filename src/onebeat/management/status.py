"""`onebeat status`: what the schedulers are doing, for a person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from django.core.management.base import BaseCommand

if TYPE_CHECKING:  # the models are loaded when a command is handled
    from django.core.management.base import CommandParser

    from onebeat.management.common import Subparsers
    from onebeat.queries.status import Status

NAME = "status"
NEEDS_TABLES = True
#: Why a scheduler at work does not send.
_UNABLE = {
    "": "starting",
    "broker_unavailable": "its broker does not answer",
    "broker_refuses": "its broker answers and accepts no message",
    "standby": "on standby for another beat",
    "classic": "in classic mode",
}


def add(commands: Subparsers) -> list[CommandParser]:
    """Declare the subcommand."""
    return [commands.add_parser(NAME, help="show schedulers, what is due and what is quarantined")]


def handle(command: BaseCommand, *, database: str, as_json: bool, **options: object) -> None:
    """What the schedulers are doing."""
    from onebeat.queries.status import status

    found = status(database)
    for line in [json.dumps(found, default=str)] if as_json else lines(found):
        command.stdout.write(line)


def lines(found: Status) -> list[str]:
    """The status as lines of text."""
    alive = sum(scheduler["alive"] for scheduler in found["schedulers"])
    out = [f"{alive} scheduler{'' if alive == 1 else 's'} at work"]
    for row in found["schedulers"]:
        able = "able to send" if row["able"] else _UNABLE.get(row["unable_reason"], row["unable_reason"])
        state = able if row["alive"] else "not seen lately"
        out.append(f"  {row['host']}:{row['pid']}  {state}, seen {row['seen_at']}, clock {row['skew_ms']:+d} ms")
    if found["other_beat"]:
        out.append(f"STANDBY: {found['other_beat']} sends the same tasks; stop it, and onebeat goes on by itself")
    out.append(
        f"{found['waiting']} tasks wait, {found['due']} of them due, the oldest {found['lag_seconds']:.1f} s late"
    )
    if found["next_wake_at"]:
        out.append(f"next at {found['next_wake_at']}")
    for words, tasks in (
        ("disabled at the take-over", found["disabled_at_takeover"]),
        ("quarantined", found["quarantined"]),
    ):
        out += [f"{words}: {task['name']} ({task['id']}): {task['reason']}" for task in tasks]
    return out
