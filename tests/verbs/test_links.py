"""A task that belongs to a row goes with it, in the same commit, however the row is deleted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, models, transaction
from django.test.utils import CaptureQueriesContext

import onebeat
from onebeat.models import PeriodicTask
from tests.engine.kit import Bench, task
from tests.project.shop.models import Order, OrderLine, Reminder


class OrderProxy(Order):
    class Meta:
        proxy = True
        app_label = "shop"


def remind(row: models.Model, key: str = "") -> onebeat.Once:
    return onebeat.once(key or f"remind {row.pk}", at=timedelta(seconds=5), task="t", for_=row)


def keys() -> set[str]:
    return set(PeriodicTask.objects.values_list("name", flat=True))


def test_deleting_the_row_deletes_its_tasks(bench: Bench) -> None:
    rows = [Order.objects.create() for _ in range(5)]
    for row in rows:
        remind(row)
    remind(rows[0], "again")
    remind(rows[4], "proxy")
    first = rows[0].pk
    with pytest.raises(RuntimeError), transaction.atomic():
        rows[0].delete()
        raise RuntimeError
    assert len(keys()) == 7
    Order.objects.get(pk=first).delete()
    assert keys() == {*(f"remind {row.pk}" for row in rows[1:]), "proxy"}
    Order.objects.filter(pk__in=[rows[1].pk, rows[2].pk]).delete()
    OrderProxy.objects.get(pk=rows[3].pk).delete()
    assert keys() == {f"remind {rows[4].pk}", "proxy"}
    bench.work(6)
    assert len(bench.sent) == 2


def test_a_cascade_takes_them_along(bench: Bench) -> None:
    order = Order.objects.create()
    line = OrderLine.objects.create(order=order)
    remind(line, "line")
    order.delete()
    assert keys() == set()


def test_a_row_that_cannot_be_followed_is_refused(bench: Bench) -> None:
    with pytest.raises(ValueError, match=r"for_: Reminder is not linked; put @onebeat.linked above `class Reminder"):
        remind(Reminder(pk=1))
    with pytest.raises(ValueError, match="for_: a saved row of a model is needed"):
        remind(Order())


def test_a_model_without_links_is_deleted_as_fast_as_ever(bench: Bench) -> None:
    one = task()
    Reminder.objects.create(task=one)
    with CaptureQueriesContext(connection) as queries:
        Reminder.objects.all().delete()
    words = [query["sql"].split()[0] for query in queries]
    assert (words.count("DELETE"), words.count("SELECT")) == (1, 0)
