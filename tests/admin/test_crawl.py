"""Every list, on the database at hand: each pair of columns to sort by, each choice of each filter, searches."""

from __future__ import annotations

from itertools import permutations, product

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from onebeat.models import PeriodicTask, TaskOptions, TaskState
from onebeat.store import plans
from tests.admin.rows import fill

pytestmark = pytest.mark.django_db
OURS = [model for model in admin.site._registry if model._meta.app_label == "django_celery_beat"]


@pytest.fixture(autouse=True)
def rows() -> None:
    """A task of each kind, three times, of each status, with a run each, and a schedule of each kind."""
    fill(3)
    tasks = list(PeriodicTask.objects.order_by("pk"))
    TaskOptions.objects.create(task=tasks[0], paused=True, paused_why="stocktaking")
    TaskOptions.objects.create(task=tasks[1], origin="code")
    PeriodicTask.objects.filter(pk=tasks[2].pk).update(enabled=False, one_off=True)
    while plans.consume("default", 100):
        pass
    TaskState.objects.filter(pk=tasks[3].pk).update(quarantine="args: not JSON")
    TaskState.objects.filter(pk=tasks[4].pk).update(due_at=None, wake_at=None)
    TaskState.objects.filter(pk=tasks[5].pk).delete()


def asked(client: Client, model: type, query: str) -> int:
    name = f"admin:django_celery_beat_{model._meta.model_name}_changelist"  # type: ignore[attr-defined]
    return client.get(reverse(name) + query).status_code


@pytest.mark.parametrize("model", OURS)
def test_sorted_by_every_pair_of_columns(client: Client, model: type) -> None:
    columns = range(1, len(admin.site._registry[model].list_display) + 1)
    orders = [
        *(f"{sign}{column}" for column in columns for sign in ("", "-")),
        *(
            f"{first}{one}.{second}{two}"
            for one, two in permutations(columns, 2)
            for first, second in product(("", "-"), repeat=2)
        ),
    ]
    answers = {order: asked(client, model, f"?o={order}") for order in orders}
    assert {order: status for order, status in answers.items() if status != 200} == {}


@pytest.mark.parametrize("model", OURS)
def test_every_choice_of_every_filter_on_every_page(client: Client, model: type) -> None:
    url = reverse(f"admin:django_celery_beat_{model._meta.model_name}_changelist")  # type: ignore[attr-defined]
    page = client.get(url).context["cl"]
    queries = {choice["query_string"] for spec in page.filter_specs for choice in spec.choices(page)}
    queries |= {"?q=crontab", '?q="no such" -x', "?q=%25_%5C%27%22", "?q=9", "?p=1", "?all=", "?e=1", "?o=99", "?o=x.1"}
    queries |= {f"{query}&o=2.-1&q=1" for query in queries if query.startswith("?") and "q=" not in query}
    answers = {query: asked(client, model, query) for query in sorted(queries)}
    assert {query: status for query, status in answers.items() if status not in (200, 302)} == {}


def test_two_columns_sort_by_the_first_and_then_by_the_second(client: Client) -> None:
    def names(query: str) -> list[str]:
        found = client.get(reverse("admin:django_celery_beat_periodictask_changelist") + query)
        return [task.name for task in found.context["cl"].result_list]

    status = names("?o=2")
    assert names("?o=2.1") == sorted(status, key=lambda name: (_rank(name), name))
    assert names("?o=2.-1") == sorted(sorted(status, reverse=True), key=_rank)
    kinds = [name.split()[1] for name in names("?o=3.2")]
    assert kinds == sorted(kinds, key=["interval", "crontab", "clocked"].index)


def _rank(name: str) -> int:
    """Quarantined, paused, off, finished, on: as `fill` and `rows` have made them."""
    tasks = list(PeriodicTask.objects.order_by("pk").values_list("name", flat=True))
    return {3: 0, 0: 1, 2: 2, 4: 3}.get(tasks.index(name), 4)
