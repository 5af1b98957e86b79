"""`onebeat sync`: bring the database to what code declares, or show the difference."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from onebeat.management.common import celery_app

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

    from onebeat.management.common import Subparsers

NAME = "sync"
NEEDS_TABLES = True
#: The exit code for tasks that are declared and cannot work.
DANGER = 3
_RUNS = 3
_WORDS = {
    "new": "+ {name}: new",
    "changed": "~ {name}: changes",
    "back": "+ {name}: is declared again",
    "removed": "- {name}: is no longer declared; it is disabled",
    "deleted": "  {name}: was deleted by hand, and stays so",
    "same": "  {name}: as declared",
}


def add(commands: Subparsers) -> list[CommandParser]:
    """Declare the subcommand."""
    parser = commands.add_parser(
        NAME,
        help="bring the database to what schedules.py and CELERY_BEAT_SCHEDULE declare",
        description="What people have changed stays. Exit code 3: a task that is declared cannot work (its name is "
        "unknown, it never runs, its arguments do not fit); 2: the database or the Celery app cannot be used.",
    )
    parser.add_argument("--dry-run", action="store_true", help="show the difference and the runs; write nothing")
    parser.add_argument("-A", "--app", help="the Celery app as module:attribute (default: the default app)")
    return [parser]


def handle(
    command: BaseCommand,
    *,
    database: str,
    dry_run: bool,
    app: str | None,
    verbosity: int = 1,
    as_json: bool,
    **options: object,
) -> None:
    """A line for each task that is not as declared, with the fields and the runs that change."""
    from onebeat.db import database_clock
    from onebeat.declare import registry, sources
    from onebeat.declare.danger import dangers
    from onebeat.declare.sync import sync

    celery = celery_app(app)
    try:
        found = [sources.of_apps(), sources.of_settings(celery)]
    except Exception as error:  # whatever a module raises
        raise CommandError(
            f"what code declares cannot be read: {registry.failure(error)}", returncode=DANGER
        ) from error
    report, now = sync(database, found, apply=not dry_run, force=True), database_clock.now(database)
    wrong = list(dangers(celery, report, now))
    if as_json:
        changes = [_as_json(change, now) for change in report.changes]
        named = [{"task": name, "why": why} for name, why in wrong]
        command.stdout.write(json.dumps({"dry_run": dry_run, "changes": changes, "dangers": named}))
    else:
        for change in report.changes:
            for line in _lines(change, now, verbosity):
                command.stdout.write(line)
        same = sum(change.what == "same" for change in report.changes)
        verb = "would change" if dry_run else "changed"
        command.stdout.write(f"{len(report.changes) - same} of {len(report.changes)} declared tasks {verb}")
        for name, why in wrong:
            command.stderr.write(f"! {name}: {why}")
    if wrong:
        raise CommandError(f"{len(wrong)} declared tasks cannot work", returncode=DANGER)


def _as_json(change: Any, now: datetime) -> dict[str, Any]:
    before, after = _runs(change, now)
    return {
        "task": change.name,
        "what": change.what,
        "place": change.place,
        "fields": {name: {"from": old, "to": new} for name, (old, new) in change.fields().items()},
        "overrides": dict(change.kept),
        "runs": {"before": before, "after": after},
    }


def _lines(change: Any, now: datetime, verbosity: int) -> Iterator[str]:
    if change.what == "same" and not change.kept and verbosity < 2:
        return
    yield f"{_WORDS[change.what].format(name=change.name)}  ({change.place})"
    for name, (old, new) in change.fields().items():
        if change.what != "new":
            yield f"    {name}: {json.dumps(old)} -> {json.dumps(new)}"
    for name, says in change.kept.items():
        if change.what != "deleted":
            yield f"    {name}: set by hand, stays {json.dumps(change.after[name])}; code says {json.dumps(says)}"
    before, after = _runs(change, now)
    if before != after:
        for title, times in (("vanish", before), ("appear", after)) if not (before and after) else ():
            if times:
                yield f"    runs that {title}: {', '.join(times)} ..."
        if before and after:
            yield f"    runs move: {', '.join(before)} ... -> {', '.join(after)} ..."


def _runs(change: Any, now: datetime) -> tuple[list[str], list[str]]:
    """The next runs as the task is, and as it will be."""
    from onebeat.declare.danger import runs

    before, after = (
        [] if form is None else [one.isoformat() for one in islice(runs(form, now), _RUNS)]
        for form in (change.before, change.after)
    )
    return before, after
