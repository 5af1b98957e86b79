"""Making a schedule looks to Django's signals, and to a rollback, as it always did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models.signals import post_save, pre_save

from onebeat.models import Change, ClockedSchedule, IntervalSchedule, PeriodicTask
from onebeat.models.instants import from_utc

pytestmark = pytest.mark.django_db

NOON = from_utc(datetime(2030, 1, 1, 12, tzinfo=UTC))


@pytest.fixture
def sent() -> Iterator[list[Any]]:
    """What signals about intervals were sent: "pre", or the `created` of a post_save."""
    seen: list[Any] = []

    def before(**rest: Any) -> None:
        seen.append("pre")

    def after(instance: Any, created: bool, raw: bool, using: str, update_fields: Any, **rest: Any) -> None:
        assert (raw, using) == (False, "default")
        assert IntervalSchedule.objects.filter(pk=instance.pk).exists()
        seen.append(created)

    pre_save.connect(before, sender=IntervalSchedule)
    post_save.connect(after, sender=IntervalSchedule)
    yield seen
    pre_save.disconnect(before, sender=IntervalSchedule)
    post_save.disconnect(after, sender=IntervalSchedule)


VALUE = {"every": 7, "period": "minutes"}


def _saved() -> IntervalSchedule:
    row = IntervalSchedule(**VALUE)  # type: ignore[misc]
    row.save()
    return row


FINDERS: list[Callable[[], Any]] = [
    lambda: IntervalSchedule.objects.get_or_create(**VALUE),
    lambda: IntervalSchedule.objects.get_or_create(defaults={"period": "minutes"}, every=7),
    lambda: IntervalSchedule.objects.update_or_create(**VALUE),
    lambda: IntervalSchedule.objects.update_or_create(every=7, defaults={"period": "minutes"}),
]
MAKERS: list[Callable[[], Any]] = [_saved, lambda: IntervalSchedule.objects.create(**VALUE)]


@pytest.mark.parametrize("find", FINDERS)
def test_a_finder_signals_when_it_makes(find: Callable[[], Any], sent: list[Any]) -> None:
    row, created = find()
    assert (created, sent) == (True, ["pre", True])
    sent.clear()
    again, created = find()
    assert (again, created, again.value()) == (row, False, row.value())
    assert "post" not in sent and True not in sent and False not in sent


@pytest.mark.parametrize("make", MAKERS)
def test_a_maker_signals_whenever_it_saves(make: Callable[[], Any], sent: list[Any]) -> None:
    row = make()
    assert sent == ["pre", True]
    assert make() == row
    assert sent == ["pre", True, "pre", False]


def test_a_row_saved_unchanged_or_edited_signals_both(sent: list[Any]) -> None:
    row = IntervalSchedule.objects.create(**VALUE)
    del sent[:]
    row.save()
    row.every = 8
    row.save()
    assert sent == ["pre", False, "pre", False]


def test_update_or_create_edits_the_row() -> None:
    row = IntervalSchedule.objects.create(**VALUE)
    edited, created = IntervalSchedule.objects.update_or_create(**VALUE, defaults={"every": 9})
    assert (edited.pk, created) == (row.pk, False)
    row.refresh_from_db()
    assert row.every == 9
    taken = IntervalSchedule.objects.create(**VALUE)
    assert IntervalSchedule.objects.update_or_create(**VALUE, defaults={"every": 9}) == (row, False)
    made = IntervalSchedule.objects.update_or_create(
        every=1, period="days", defaults={"every": 2}, create_defaults={"every": 3}
    )
    assert (made[0].every, made[1]) == (3, True)
    assert {each.pk for each in IntervalSchedule.objects.all()} == {row.pk, taken.pk, made[0].pk}


def test_what_is_no_plain_value_goes_djangos_way() -> None:
    row = IntervalSchedule.objects.create(**VALUE)
    rows = IntervalSchedule.objects
    assert rows.get_or_create(pk=row.pk, defaults={"every": 1, "period": "days"}) == (row, False)
    assert rows.filter(every__gt=5).get_or_create(period="minutes", defaults={"every": 6}) == (row, False)
    assert rows.get_or_create(every__gt=5, defaults={"every": 6, "period": "days"}) == (row, False)


def test_full_clean_takes_a_value_that_exists_from_a_new_object_alone() -> None:
    row = IntervalSchedule.objects.create(**VALUE)
    new = IntervalSchedule(**VALUE)  # type: ignore[misc]
    new.full_clean()
    new.save()
    assert new.pk == row.pk
    other = IntervalSchedule.objects.create(every=8, period="minutes")
    other.every = 7
    with pytest.raises(ValidationError, match=f"interval {row.pk} "):
        other.full_clean()


def test_a_copy_without_a_key_adopts() -> None:
    row = IntervalSchedule.objects.create(**VALUE)
    copy = IntervalSchedule.objects.get(pk=row.pk)
    copy.pk = None
    copy.save()
    assert (copy.pk, IntervalSchedule.objects.count()) == (row.pk, 1)


def test_a_new_object_with_a_key_of_its_own_adopts_the_value() -> None:
    row = IntervalSchedule.objects.create(**VALUE)
    with_key = IntervalSchedule(pk=row.pk + 1000, **VALUE)  # type: ignore[misc]
    with_key.save()
    assert with_key.pk == row.pk
    listed = IntervalSchedule(pk=row.pk + 1000, **VALUE)  # type: ignore[misc]
    free = IntervalSchedule(pk=row.pk + 2000, every=1, period="days")
    assert [one.pk for one in IntervalSchedule.objects.bulk_create([listed, free])] == [row.pk, row.pk + 2000]
    assert IntervalSchedule.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_rollback_leaves_neither_row_nor_hint() -> None:
    class Undo(Exception):
        pass

    with pytest.raises(Undo), transaction.atomic():
        row, created = ClockedSchedule.objects.get_or_create(clocked_time=NOON)
        assert created
        PeriodicTask.objects.create(name="a", task="t", clocked=row, one_off=True)
        row.clocked_time = NOON.replace(hour=13)
        row.save()
        assert Change.objects.count() == 2
        raise Undo
    assert (ClockedSchedule.objects.count(), PeriodicTask.objects.count(), Change.objects.count()) == (0, 0, 0)
    assert ClockedSchedule.objects.get_or_create(clocked_time=NOON)[1]
