"""The verbs on a database that `migrate` has not reached, or not since an older onebeat: an error that says so, and the
caller's transaction goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models.signals import post_delete

import onebeat
from onebeat.db import schema
from onebeat.models import PeriodicTask, TaskOptions
from tests.engine.kit import at, sql, task
from tests.project.shop.models import Order

pytestmark = pytest.mark.django_db

VERBS: dict[str, Callable[[], Any]] = {
    "once": lambda: onebeat.once("k", at=at(0), task="t"),
    "once_many": lambda: onebeat.once_many([{"key": "k", "at": at(0), "task": "t"}]),
    "cancel": lambda: onebeat.cancel("k"),
    "pause": lambda: onebeat.pause("t"),
    "pause all": lambda: onebeat.pause(onebeat.ALL),
    "resume": lambda: onebeat.resume("t"),
    "skip": lambda: onebeat.skip("t", at(0)),
    "run_now": lambda: onebeat.run_now("t"),
    "options": lambda: TaskOptions(task=PeriodicTask.objects.get()).save(),
    "options of many": lambda: TaskOptions.objects.bulk_create([TaskOptions(task=PeriodicTask.objects.get())]),
    "upcoming": lambda: onebeat.upcoming("t"),
    "explain": lambda: onebeat.explain("t", at(0)),
}
COMMANDS = (["status"], ["health"], ["next"], ["prune"], ["explain", "t", "--at", "2026-01-01"], ["check"])
BEFORE = {
    "no table": ["ALTER TABLE onebeat_taskoptions RENAME TO onebeat_gone"],
    "an older one": ["ALTER TABLE onebeat_taskoptions RENAME COLUMN extra TO younger"],
    "one without links": ["ALTER TABLE onebeat_taskoptions RENAME COLUMN link TO younger"],
}


@pytest.fixture(params=BEFORE)
def row(request: pytest.FixtureRequest) -> Any:
    """A row of a linked model, on a database of before."""
    if not connection.features.can_rollback_ddl:
        pytest.skip("tables cannot be put back by a rollback")
    row = Order.objects.create()
    task()
    for statement in BEFORE[request.param]:
        sql(statement)
    schema.known().migrate_ended()
    yield row
    schema.known().migrate_ended()


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_names_the_way_out(row: Order, verb: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"run `manage.py migrate`; missing: onebeat_taskoptions"):
        VERBS[verb]()
    assert PeriodicTask.objects.count() == 1


def test_so_does_a_command(row: Order) -> None:
    for words in COMMANDS:
        with pytest.raises(CommandError, match=r"run `manage.py migrate`; missing: onebeat_taskoptions"):
            call_command("onebeat", *words)


@pytest.mark.parametrize("watched", [False, True])
def test_what_is_linked_or_has_options_can_be_deleted(row: Order, watched: bool) -> None:
    """Somebody who listens to every deletion makes Django read what it deletes."""
    seen = []

    def listen(sender: Any, **kwargs: Any) -> None:
        seen.append(sender)

    if watched:
        post_delete.connect(listen)
    try:
        row.delete()
        PeriodicTask.objects.get().delete()
    finally:
        post_delete.disconnect(listen)
    assert not PeriodicTask.objects.exists() and (Order in seen) == watched
