"""`onebeat adopt`: what `migrate` would merge, or what it merged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

    from onebeat.management.common import Subparsers

NAME = "adopt"
#: It is asked before the first `migrate`.
NEEDS_TABLES = False


def add(commands: Subparsers) -> list[CommandParser]:
    """Declare the subcommand."""
    parser = commands.add_parser(NAME, help="show what taking over a django-celery-beat database merged")
    parser.add_argument("--check", action="store_true", help="show what `migrate` would do; change nothing")
    return [parser]


def handle(command: BaseCommand, *, database: str, check: bool, as_json: bool, **options: object) -> None:
    """What `migrate` would merge, or what it merged. Exit code 1 if something stops it."""
    from onebeat.takeover.arrive import record
    from onebeat.takeover.arrive.adopt import check as foreseen

    found = foreseen(database) if check else record.recorded(database)
    for line in [json.dumps(found)] if as_json else lines(found, done=not check):
        command.stdout.write(line)
    if found.get("stops"):
        raise CommandError("`migrate` would stop", returncode=1)


def lines(found: dict[str, Any], *, done: bool) -> list[str]:
    """The report of `adopt.check` or `record.recorded` for people; `done` says whether it has been carried out."""
    report = [f"STOPS: {line}" for line in found.get("stops", ())]
    for kind in ("interval", "crontab", "clocked"):
        if kind in found:
            report += _merged(kind, found[kind], "" if done else "would be ")
    if found.get("readings", {}).get("rows"):
        report += _readings(found["readings"], done)
    for row in found.get("unplannable", ()):
        tasks = f"would be quarantined: {', '.join(row['tasks'])}" if row["tasks"] else "no enabled task uses it"
        report.append(f"{row['kind']} ({row['value']}): {row['why']}; {tasks}")
    return report or ["nothing to merge"]


def _merged(kind: str, found: dict[str, Any], would: str) -> Iterator[str]:
    yield (
        f"{kind}: {found['merged']} duplicates of {found['groups']} rows {would}merged, {found['respelled']} rows "
        f"{would}respelled"
    )
    for name, count in found["repointed"].items():
        yield f"  {name}: {count} rows {would}pointed at the kept row"
    for row in found["kept"]:
        yield f"  {kind} {row['id']} ({row['value']}) stands for {row['merged']} more, used by {row['tasks']} tasks"


def _readings(found: dict[str, Any], done: bool) -> Iterator[str]:
    yield (
        f"crontabs as Celery read them: {found['kept']} mean what they say, {found['expanded']} keep another meaning, "
        f"{found['disabled']} could not be read, {found['zone']} have a time zone that is not known here"
    )
    for row in found["rows"]:
        names = ", ".join(row["tasks"][:10]) + (" and more" if len(row["tasks"]) > 10 else "")
        what = {"disabled": "disabled" if done else "would be disabled"}.get(row["verdict"], "used by")
        yield f"  crontab {row['id']} ({row['value']}): {row['why']}" + (f"; {what}: {names}" if names else "")
