"""Every change made through the ORM leaves a hint for the engine, in the same transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from onebeat.models import Change, IntervalSchedule, PeriodicTask

pytestmark = pytest.mark.django_db


@pytest.fixture
def hourly() -> IntervalSchedule:
    return IntervalSchedule.objects.create(every=1, period="hours")


@pytest.fixture
def task(hourly: IntervalSchedule) -> PeriodicTask:
    task = PeriodicTask.objects.create(name="a", task="t", interval=hourly)
    Change.objects.all().delete()
    return task


def _hints() -> list[tuple[str, int]]:
    return list(Change.objects.order_by("pk").values_list("kind", "ref"))


def _with(task: PeriodicTask, **fields: Any) -> PeriodicTask:
    for name, value in fields.items():
        setattr(task, name, value)
    return task


CHANGES: dict[str, Callable[[PeriodicTask], Any]] = {
    "save": lambda task: task.save(),
    "save of a field": lambda task: _with(task, enabled=False).save(update_fields=["enabled"]),
    "save of two fields": lambda task: _with(task, args=[1]).save(update_fields=["args", "description"]),
    "update": lambda task: PeriodicTask.objects.filter(name="a").update(enabled=False),
    "update that moves it out of its filter": lambda task: PeriodicTask.objects.filter(enabled=True).update(
        enabled=False
    ),
    "update across a join": lambda task: PeriodicTask.objects.filter(interval__period="hours").update(enabled=False),
    "update of a related manager": lambda task: task.interval.periodictask_set.update(enabled=False),
    "bulk_update": lambda task: PeriodicTask.objects.bulk_update([_with(task, enabled=False)], ["enabled"]),
    "update_or_create": lambda task: PeriodicTask.objects.update_or_create(name="a", defaults={"enabled": False}),
}
QUIET: dict[str, Callable[[PeriodicTask], Any]] = {
    "save": lambda task: _with(task, description="b").save(update_fields=["description"]),
    "save of nothing": lambda task: task.save(update_fields=[]),
    "save of a part": lambda task: PeriodicTask.objects.only("description").get(pk=task.pk).save(),
    "update": lambda task: PeriodicTask.objects.update(description="b", total_run_count=7),
    "bulk_update": lambda task: PeriodicTask.objects.bulk_update([_with(task, description="b")], ["description"]),
    "nothing found": lambda task: PeriodicTask.objects.filter(name="b").update(enabled=False),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_changed_task_leaves_one(task: PeriodicTask, how: str) -> None:
    CHANGES[how](task)
    assert _hints() == [("task", task.pk)]


@pytest.mark.parametrize("how", QUIET)
def test_what_no_plan_depends_on_leaves_none(task: PeriodicTask, how: str) -> None:
    QUIET[how](task)
    assert _hints() == []


def test_an_object_read_in_part_is_written_in_part(task: PeriodicTask) -> None:
    part = PeriodicTask.objects.only("name", "description").get(pk=task.pk)
    PeriodicTask.objects.update(args="[1]")
    part.description = "mine"
    part.save()
    task.refresh_from_db()
    assert (task.args, task.description) == ("[1]", "mine")


MAKERS: dict[str, Callable[[PeriodicTask], Any]] = {
    "save": lambda task: task.save(),
    "bulk_create": lambda task: PeriodicTask.objects.bulk_create([task]),
    "bulk_create that ignores conflicts": lambda task: PeriodicTask.objects.bulk_create([task], ignore_conflicts=True),
    "bulk_create that updates": lambda task: PeriodicTask.objects.bulk_create(
        [task], update_conflicts=True, update_fields=["enabled"], **_upsert()
    ),
}


def _upsert() -> dict[str, Any]:
    from django.db import connection

    target = connection.features.supports_update_conflicts_with_target
    return {"unique_fields": ["name"]} if target else {}


@pytest.mark.parametrize("how", MAKERS)
def test_a_new_task_leaves_one(hourly: IntervalSchedule, how: str) -> None:
    MAKERS[how](PeriodicTask(name="new", task="t", interval=hourly))
    made = PeriodicTask.objects.get(name="new")
    assert set(_hints()) == {("task", made.pk)}


def test_a_new_task_of_a_related_manager_leaves_one(hourly: IntervalSchedule) -> None:
    made = hourly.periodictask_set.create(name="new", task="t")  # type: ignore[attr-defined]
    assert _hints() == [("task", made.pk)]


EDITS: dict[str, Callable[[IntervalSchedule], Any]] = {
    "save": lambda row: row.save(),
    "update": lambda row: IntervalSchedule.objects.filter(pk=row.pk).update(every=row.every),
    "bulk_update": lambda row: IntervalSchedule.objects.bulk_update([row], ["every"]),
    "update_or_create": lambda row: IntervalSchedule.objects.update_or_create(
        every=1, period="hours", defaults={"every": row.every}
    ),
}


@pytest.mark.parametrize("how", EDITS)
def test_an_edited_schedule_leaves_one(task: PeriodicTask, hourly: IntervalSchedule, how: str) -> None:
    hourly.every = 5
    EDITS[how](hourly)
    assert _hints() == [("interval", hourly.pk)]


@pytest.mark.parametrize("how", EDITS)
def test_a_schedule_written_as_it_was_leaves_none(task: PeriodicTask, hourly: IntervalSchedule, how: str) -> None:
    EDITS[how](hourly)
    assert _hints() == []


@pytest.mark.django_db(transaction=True)
def test_a_hint_belongs_to_the_transaction_of_the_change(task: PeriodicTask, hourly: IntervalSchedule) -> None:
    class Undo(Exception):
        pass

    for change in (*CHANGES.values(), lambda task: _with(hourly, every=9).save()):
        task.refresh_from_db()
        with pytest.raises(Undo), transaction.atomic():
            change(task)
            assert len(_hints()) == 1
            raise Undo
        assert _hints() == []
