"""`manage.py onebeat handback`: the way back to django-celery-beat."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

    from onebeat.management.common import Subparsers

NAME = "handback"
NEEDS_TABLES = False
_TABLES = (
    "The tables onebeat_* are left as they are, and do no harm. To take them away as well, with all that they "
    "hold: manage.py migrate django_celery_beat 0019"
)
_KEPT = (
    "The unique constraints of the schedules are there. django-celery-beat gets an IntegrityError where it would make "
    "a second row of one value: --drop-constraints takes them away."
)
_RECORD = "handed_back"
#: So many tasks are named in one list; the rest is counted.
_NAMED = 200


def add(commands: Subparsers) -> list[CommandParser]:
    """Declare the subcommand."""
    parser = commands.add_parser(NAME, help="give the tables back to django-celery-beat")
    parser.add_argument("--check", action="store_true", help="show what it would do; change nothing. Exit code 1: look")
    parser.add_argument("--disable", action="store_true", help="disable the tasks that must not be left to it as is")
    parser.add_argument("--drop-constraints", action="store_true", help="take our unique constraints away")
    return [parser]


def handle(
    command: BaseCommand,
    *,
    database: str,
    check: bool,
    disable: bool,
    drop_constraints: bool,
    as_json: bool,
    **options: object,
) -> None:
    """Exit code 0, or 1: a scheduler is at work (nothing was changed), or `check` found something to look at."""
    from onebeat.takeover.leave import handback, unconstrain

    found: dict[str, Any] = {"schedulers": [f"{one.host}:{one.pid}" for one in handback.alive(database)]}
    if found["schedulers"] and not check:
        raise CommandError(
            f"Stop these schedulers first: {', '.join(found['schedulers'])}. Nothing was changed.", returncode=1
        )
    batches = handback.look(database) if check else handback.give_back(database, disable=disable)
    found.update(_summed(batches, disable))
    if drop_constraints and not check:
        unconstrain.drop(database)
    found["constraints"] = unconstrain.present(database)
    found["record"] = _recorded(database, found, keep=not check)
    command.stdout.write(json.dumps(found) if as_json else "\n".join(_lines(found, done=not check)))
    if check and (found["schedulers"] or found["wrong"]):
        raise CommandError("Something to look at.", returncode=1)


def _summed(batches: Iterable[list[Any]], disable: bool) -> dict[str, Any]:
    counts = {"tasks": 0, "run_state": 0, "finished": 0, "unsent": 0}
    wrong, notes = [], []
    for task in (task for batch in batches for task in batch):
        counts["tasks"] += 1
        counts["run_state"] += bool({"last_run_at", "total_run_count"} & task.columns.keys())
        counts["unsent"] += task.unsent
        if task.wrong:
            why = [one.text for one in task.differences if one.wrong]
            wrong.append({"id": task.id, "name": task.name, "why": "; ".join(why), "disabled": disable})
        elif "enabled" in task.columns:
            counts["finished"] += 1
        if note := "; ".join(one.text for one in task.differences if not one.wrong):
            notes.append({"id": task.id, "name": task.name, "what": note})
    return {**counts, "wrong": wrong, "notes": notes}


def _recorded(database: str, found: dict[str, Any], *, keep: bool) -> list[dict[str, Any]]:
    """The tasks that were disabled before, with why and when; `keep`: those of this time are added to the record."""
    from onebeat.db import database_clock
    from onebeat.models import Fact

    facts = Fact.objects.using(database)
    row = facts.filter(name=_RECORD).first()
    record: list[dict[str, object]] = json.loads(row.value) if row else []
    new = [{**one, "at": database_clock.now(database).isoformat()} for one in found["wrong"] if one["disabled"]]
    if keep and new:
        more = [{key: one[key] for key in ("id", "name", "why", "at")} for one in new]
        facts.update_or_create(name=_RECORD, defaults={"value": json.dumps(record + more)})
    return record


def _lines(found: dict[str, Any], *, done: bool) -> list[str]:
    report = [f"AT WORK: {one}; it has to be stopped first" for one in found["schedulers"]]
    report.append(
        f"{found['tasks']} tasks: run state {'' if done else 'to be '}written for {found['run_state']}, "
        f"{found['finished']} finished ones {'' if done else 'to be '}disabled"
    )
    if found["unsent"]:
        report.append(
            f"{found['unsent']} occurrences were claimed by a scheduler that is lost, and not recorded as sent: "
            "django-celery-beat sends them"
        )
    for one in found["wrong"][:_NAMED]:
        what = "DISABLED" if one["disabled"] and done else "WRONG THERE"
        report.append(f"{what}: {one['name']} ({one['id']}): {one['why']}")
    report += [f"differs: {one['name']} ({one['id']}): {one['what']}" for one in found["notes"][:_NAMED]]
    more = max(0, len(found["wrong"]) - _NAMED) + max(0, len(found["notes"]) - _NAMED)
    if more:
        report.append(f"and {more} more; --json names all")
    if any(not one["disabled"] for one in found["wrong"]):
        report.append("--disable disables those that are wrong there and keeps a record of them.")
    report += [f"disabled by an earlier handback: {one['name']} ({one['id']}): {one['why']}" for one in found["record"]]
    if found["constraints"]:
        report.append(_KEPT)
    return [*report, _TABLES]
