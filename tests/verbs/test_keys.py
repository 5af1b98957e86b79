"""A key means its bytes, in every verb and for names that code declares, also where a database takes two for one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from celery.schedules import crontab
from django.db import OperationalError, connection, transaction

import onebeat
from onebeat.celery.entries import ModelEntry
from onebeat.core import keys
from onebeat.declare.overriding import drop_override, overridden, overrides
from onebeat.declare.values import Every
from onebeat.importing.carry import carry
from onebeat.importing.settings import rows
from onebeat.models import Declared, Occurrence, PeriodicTask, TaskOptions
from tests.declare.conftest import Code, code
from tests.engine.kit import Bench, another_session, at, every, task
from tests.project.celery import app
from tests.project.shop.models import Order

__all__ = ["code"]

#: What the collations of MySQL and MariaDB take for one name.
ALIKE = ["Report", "report", "R\u00e9port", "Re\u0301port", "Report ", "REPORT"]
TASK = "tests.project.tasks.add"


def made() -> dict[str, onebeat.Once]:
    items: list[onebeat.OnceItem] = [
        {"key": key, "at": at(10), "task": TASK, "args": [number]} for number, key in enumerate(ALIKE)
    ]
    return {one.key: one for one in onebeat.once_many(items)}


@pytest.mark.parametrize("key", ALIKE)
def test_every_verb_means_the_one_task(bench: Bench, key: str) -> None:
    mine, others = made()[key].task.pk, [other for other in ALIKE if other != key]
    bench.tick()
    assert [one.due_at for one in onebeat.upcoming(key, 3)] == [at(10)]
    assert onebeat.pause(key) == 1
    assert list(TaskOptions.objects.filter(paused=True).values_list("pk", flat=True)) == [mine]
    assert [onebeat.resume(other) for other in others] == [0] * len(others)
    assert onebeat.resume(key) == 1
    assert onebeat.disable(key) == 1 and [onebeat.disable(other) for other in others] == [1] * len(others)
    assert onebeat.enable(key) == 1
    assert list(PeriodicTask.objects.filter(enabled=True).values_list("pk", flat=True)) == [mine]
    assert [onebeat.enable(other) for other in others] == [1] * len(others)
    bench.tick()
    assert onebeat.once(key, at=at(20), task=TASK, if_exists="reschedule").rescheduled
    assert {one.clocked.clocked_time for one in PeriodicTask.objects.exclude(pk=mine)} == {at(10)}
    with pytest.raises(onebeat.KeyTaken):
        onebeat.duplicate(others[0], key)
    onebeat.run_now(key)
    bench.tick()
    assert [json.loads(PeriodicTask.objects.get(pk=mine).args)] == [list(one.args) for one in bench.outbox.messages]
    assert onebeat.skip(key, at(20)) and onebeat.explain(key, at(20)).kind == "skipped"
    assert onebeat.cancel(others[0]) and not onebeat.cancel(others[0] + " x")
    assert onebeat.once(others[0], at=at(30), task=TASK).state == "cancelled"
    assert onebeat.once(others[1], at=at(30), task=TASK).state == "waiting"


def test_of_deleted_tasks_each_key_has_its_own_record(bench: Bench) -> None:
    made()
    bench.work(11)
    PeriodicTask.objects.all().delete()
    assert Occurrence.objects.count() == len(ALIKE)
    found = {key: str(onebeat.explain(key, at(10)).facts["task"]) for key in ALIKE}
    assert [key for key, name in found.items() if not keys.has(name, key)] == []
    with pytest.raises(onebeat.UnknownTask):
        onebeat.explain("rEport", at(10))


def test_a_copy_gets_the_name_that_was_asked_for(bench: Bench) -> None:
    task("Report", interval=every(10))
    for key in ALIKE[1:]:
        onebeat.duplicate("Report", key)
        with pytest.raises(onebeat.KeyTaken):
            onebeat.duplicate("Report", key)
    assert [onebeat.enable(key) for key in ALIKE[1:]] == [1] * 5


def test_a_row_of_the_name_itself_comes_before_one_with_a_suffix(bench: Bench) -> None:
    """It can come when the one that stood in its way has gone."""
    suffixed, plain = task(keys.suffixed("report")), task("report")
    assert onebeat.pause("report") == 1
    found = TaskOptions.objects.get(paused=True).pk
    assert found == plain.pk and suffixed.pk != plain.pk


def test_declared_names_are_their_bytes(bench: Bench, code: Code) -> None:
    def declared(seconds: int, names: list[str]) -> Any:
        return [((name, Every(seconds=seconds), TASK), {"args": [ALIKE.index(name), 0]}) for name in names]

    report = code(*declared(60, ALIKE))
    assert {one.name: one.what for one in report.changes} == dict.fromkeys(ALIKE, "new") and not report.refused
    assert set(Declared.objects.values_list("name", flat=True)) == set(ALIKE)
    assert {one.what for one in code(*declared(60, ALIKE)).changes} == {"same"}
    code(*declared(30, ALIKE[:3]))
    by_number = {json.loads(row.args)[0]: row for row in PeriodicTask.objects.all()}
    assert [(by_number[n].interval.every, by_number[n].enabled) for n in range(6)] == [(30, True)] * 3 + [
        (60, False)
    ] * 3
    bench.tick()
    assert "no longer declared" in onebeat.explain(by_number[4], at(100)).sentence
    row = by_number[1]
    PeriodicTask.objects.filter(pk=row.pk).update(queue="mine", enabled=False)
    assert [one.field for one in overrides(row)] == [one.field for one in overrides("report")] == ["enabled"]
    assert overridden([row.name]).keys() == {row.name} and not overrides("Report")
    assert drop_override(row, "enabled") and PeriodicTask.objects.get(pk=row.pk).enabled


def test_entries_of_the_settings_are_their_bytes_too(bench: Bench) -> None:
    """As `DatabaseScheduler` stores them."""
    for _ in range(2):
        for number, name in enumerate(ALIKE):
            ModelEntry.from_entry(name, app=app, task=TASK, schedule=crontab(), args=[number])
    assert sorted(json.loads(row.args)[0] for row in PeriodicTask.objects.all()) == list(range(6))
    assert set(Declared.objects.values_list("name", flat=True)) == set(ALIKE)


def test_what_is_imported_is_its_bytes(bench: Bench) -> None:
    entries = {name: {"task": TASK, "schedule": 60, "args": [number]} for number, name in enumerate(ALIKE)}
    assert [one.outcome for one in carry("default", rows(entries), apply=True, replace=False)] == ["new"] * 6
    assert [one.outcome for one in carry("default", rows(entries), apply=True, replace=False)] == ["same"] * 6
    assert sorted(json.loads(row.args)[0] for row in PeriodicTask.objects.all()) == list(range(6))


@pytest.mark.skipif(connection.vendor != "mysql", reason="only there a key can meet another's row")
def test_the_row_in_the_way_stays_until_the_key_has_its_own(bench: Bench) -> None:
    """If it could go in between, a second caller of the key would get its name, and the key two rows."""
    onebeat.once("Report", at=at(10), task=TASK)
    with transaction.atomic():
        onebeat.once("report", at=at(10), task=TASK)
        with another_session() as other, pytest.raises(OperationalError, match="1205"):
            other.execute("SET innodb_lock_wait_timeout = 1")
            other.execute("DELETE FROM django_celery_beat_periodictask WHERE name = 'Report'")
    assert PeriodicTask.objects.count() == 2


@pytest.mark.skipif(connection.vendor != "mysql", reason="only there a link is compared by a collation")
def test_a_deleted_row_takes_its_own_tasks_along(bench: Bench) -> None:
    onebeat.linked(Order)
    row = Order.objects.create()
    for number, key in enumerate(("A", "a")):
        one = onebeat.once(f"k{number}", at=at(10), task=TASK)
        TaskOptions.objects.filter(pk=one.task.pk).update(link=f"shop.order:{key}")
    row.pk = "a"
    from onebeat.verbs import links

    links._deleted(Order, row)
    assert list(PeriodicTask.objects.values_list("name", flat=True)) == ["k0"]
