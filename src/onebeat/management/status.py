"""`onebeat status`: what the schedulers are doing and what the tables take, for a person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from django.core.management.base import BaseCommand

if TYPE_CHECKING:  # the models are loaded when a command is handled
    from django.core.management.base import CommandParser

    from onebeat.management.common import Subparsers
    from onebeat.queries.status import Status
    from onebeat.queries.storage import Storage

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
    parser = commands.add_parser(NAME, help="show schedulers, what is due and what is quarantined")
    parser.add_argument("--storage", action="store_true", help="show what the tables take and what goes next")
    return [parser]


def handle(command: BaseCommand, *, database: str, as_json: bool, storage: bool, **options: object) -> None:
    """What the schedulers are doing; with `storage`, what the tables take."""
    from onebeat.queries import status as schedulers
    from onebeat.queries import storage as tables

    if storage:
        sizes = tables.storage(database)
        text = [json.dumps(sizes)] if as_json else storage_lines(sizes)
    else:
        found = schedulers.status(database)
        text = [json.dumps(found, default=str)] if as_json else lines(found)
    for line in text:
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


def storage_lines(found: Storage) -> list[str]:
    """What the tables take, as lines of text; a dash is what this database does not say."""
    out = [f"{'table':<24}{'rows':>14}{'bytes':>16}{'dead rows':>14}  oldest row"]
    for name, one in found["tables"].items():
        figures = ["-" if value is None else f"{value:,}" for value in (one["rows"], one["bytes"], one["dead_rows"])]
        out.append(f"{name:<24}{figures[0]:>14}{figures[1]:>16}{figures[2]:>14}  {one['oldest'] or '-'}")
    plan = found["retention"]
    for words, before in (("sent", plan["sent_before"]), ("failed and skipped", plan["failed_before"])):
        out.append(f"{words}: {'kept for ever' if before is None else f'deleted when decided before {before}'}")
    under_way = f"goes on after the occurrence {plan['after']}" if plan["after"] else "begins at the oldest occurrence"
    holder = f"the scheduler {plan['holder']} does it" if plan["holder"] else "no scheduler does it now"
    return [*out, f"the next piece {under_way}; {holder}"]
