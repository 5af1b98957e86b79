"""Deleting a schedule, and editing one in place: who else is hit is asked first, or said."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.utils import NestedObjects
from django.core.exceptions import ValidationError
from django.db.models import ProtectedError

from onebeat.models import CrontabSchedule, IntervalSchedule, PeriodicTask, TaskOptions

pytestmark = pytest.mark.django_db


@pytest.fixture
def hourly() -> IntervalSchedule:
    return IntervalSchedule.objects.create(every=1, period="hours")


def _tasks(row: IntervalSchedule, *names: str) -> list[PeriodicTask]:
    return [PeriodicTask.objects.create(name=name, task="t", interval=row) for name in names]


DELETIONS: list[Callable[[IntervalSchedule], Any]] = [
    lambda row: row.delete(),
    lambda row: IntervalSchedule.objects.filter(pk=row.pk).delete(),
    lambda row: IntervalSchedule.objects.all().delete(),
]


@pytest.mark.parametrize("delete", DELETIONS)
def test_it_takes_its_one_task_along(hourly: IntervalSchedule, delete: Callable[[IntervalSchedule], Any]) -> None:
    other = IntervalSchedule.objects.create(every=2, period="hours")
    TaskOptions.objects.create(task=_tasks(hourly, "mine")[0])
    _tasks(other, "theirs")
    delete(hourly)
    assert not PeriodicTask.objects.filter(name="mine").exists()
    assert not IntervalSchedule.objects.filter(every=1).exists()
    assert not TaskOptions.objects.exists()


@pytest.mark.parametrize("delete", DELETIONS)
def test_it_is_kept_when_several_tasks_use_it(
    hourly: IntervalSchedule, delete: Callable[[IntervalSchedule], Any]
) -> None:
    tasks = _tasks(hourly, "invoices", "mails", "reports")
    with pytest.raises(ProtectedError) as caught:
        delete(hourly)
    assert caught.value.protected_objects == set(tasks)
    assert "3 tasks share this interval: 'invoices', 'mails', 'reports'." in str(caught.value.args[0])
    assert (IntervalSchedule.objects.count(), PeriodicTask.objects.count()) == (1, 3)


def test_the_admin_lists_the_tasks_as_protected(hourly: IntervalSchedule) -> None:
    tasks = _tasks(hourly, "invoices", "mails")
    collector = NestedObjects("default")
    collector.collect([hourly])
    assert set(collector.protected) == set(tasks)


def test_an_edit_of_a_shared_schedule_is_logged(hourly: IntervalSchedule, caplog: pytest.LogCaptureFixture) -> None:
    alone = IntervalSchedule.objects.create(every=2, period="hours")
    _tasks(hourly, "invoices", "mails")
    _tasks(alone, "reports")

    def edit(row: IntervalSchedule, how: Callable[[IntervalSchedule], Any]) -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.WARNING, "onebeat"):
            row.every += 10
            how(row)
        assert IntervalSchedule.objects.get(pk=row.pk).every == row.every
        return caplog.messages

    ways: list[Callable[[IntervalSchedule], Any]] = [
        lambda row: row.save(),
        lambda row: IntervalSchedule.objects.bulk_update([row], ["every"]),
        lambda row: IntervalSchedule.objects.filter(pk=row.pk).update(every=row.every),
    ]
    for how in ways:
        assert edit(alone, how) == []
        (message,) = edit(hourly, how)
        assert "invoices, mails" in message and f"interval {hourly.pk}" in message
    caplog.clear()
    hourly.save()
    IntervalSchedule.from_schedule(hourly.schedule).save()
    assert caplog.messages == []


def test_an_edit_into_another_rows_value_names_that_row(hourly: IntervalSchedule) -> None:
    other = IntervalSchedule.objects.create(every=2, period="hours")
    copy = IntervalSchedule.objects.get(pk=other.pk)
    copy.every = 1
    ways: list[Callable[[], Any]] = [
        copy.full_clean,
        copy.save,
        lambda: IntervalSchedule.objects.bulk_update([copy], ["every"]),
        lambda: IntervalSchedule.objects.filter(pk=other.pk).update(every=1),
    ]
    for edit in ways:
        with pytest.raises(ValidationError, match=rf"interval {hourly.pk} \(every hour\) has this value already"):
            edit()
    with pytest.raises(ValidationError, match="has this value already"):
        IntervalSchedule.objects.update(every=3)
    assert set(IntervalSchedule.objects.values_list("pk", "every")) == {(hourly.pk, 1), (other.pk, 2)}


def test_a_crontab_that_is_half_edited_names_the_row_too() -> None:
    nine = CrontabSchedule.objects.create(minute="0", hour="9")
    ten = CrontabSchedule.objects.create(minute="0", hour="10")
    with pytest.raises(ValidationError, match=f"crontab {nine.pk} "):
        CrontabSchedule.objects.filter(pk=ten.pk).update(hour=[9])
