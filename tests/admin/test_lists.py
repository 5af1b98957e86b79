"""Sorting and filtering the lists: by each column, exactly where tasks are few and bounded where they are many."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from onebeat.admin.occurrences import OccurrenceList
from onebeat.core import clock
from onebeat.models import CrontabSchedule, IntervalSchedule, Occurrence, PeriodicTask, TaskOptions, TaskState
from onebeat.queries import last_runs
from onebeat.store import plans

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 27, 9, tzinfo=UTC)
#: Each task: what became of its runs, the oldest first.
RUNS = {
    "failing": ["succeeded", "failed"],
    "mended": ["failed", "succeeded"],
    "running": ["succeeded", "started"],
    "skipping": ["succeeded", "skipped"],
    "new": [],
}


@pytest.fixture(autouse=True)
def tasks() -> Any:
    with clock.pin(NOW):
        every = IntervalSchedule.objects.create(every=5, period="minutes")
        for name, states in RUNS.items():
            task = PeriodicTask.objects.create(name=name, task=f"shop.{name}", interval=every)
            for place, state in enumerate(states, -len(states)):
                run(task, state, NOW + timedelta(hours=place))
        while plans.consume("default", 100):
            pass
        yield


def run(task: PeriodicTask, state: str, at: datetime) -> None:
    """One row of the ledger; a failed one left a minute late."""
    sent = None if state == "skipped" else at + timedelta(seconds=60 if state == "failed" else 0)
    Occurrence.objects.create(
        task=task,
        task_uid=task.pk,
        task_name=task.name,
        due_at=at,
        decided_at=at,
        sent_at=sent,
        state=state,
        reason="paused" if state == "skipped" else "",
        error="boom" if state == "failed" else "",
        celery_task_id=uuid.uuid4(),
    )
    if sent:
        PeriodicTask.objects.filter(pk=task.pk).update(last_run_at=sent, total_run_count=1)


def listed(client: Client, query: str, model: str = "periodictask") -> list[Any]:
    """The page's rows, in its order."""
    response = client.get(reverse(f"admin:django_celery_beat_{model}_changelist") + query)
    assert response.status_code == 200, query
    return list(response.context["cl"].result_list)


def names(client: Client, query: str) -> list[str]:
    return [task.name for task in listed(client, query)]


@pytest.mark.parametrize("exact", [20_000, 2], ids=["few", "many"])
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?outcome=failed", ["failing"]),
        ("?outcome=succeeded", ["mended", "skipping"]),
        ("?outcome=started", ["running"]),
        ("?outcome=skipped", ["skipping"]),
        ("?outcome=sent", []),
        ("?outcome=nonsense", sorted(RUNS)),
        ("?late=60", ["failing"]),
        ("?late=3600", []),
    ],
)
def test_the_last_outcome(
    client: Client, monkeypatch: pytest.MonkeyPatch, exact: int, query: str, found: list[str]
) -> None:
    monkeypatch.setattr(last_runs, "EXACT", exact)
    assert names(client, query) == found


def test_where_tasks_are_many_the_last_outcome_is_looked_for_among_the_newest(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_runs, "EXACT", 2)
    monkeypatch.setattr(last_runs, "NEWEST", 2)  # the newest two are of `skipping`
    assert names(client, "?outcome=succeeded") == ["skipping"]
    assert names(client, "?outcome=failed") == ["failing"], "failures are found by themselves"
    assert names(client, "?o=6") == ["skipping"]


def test_sorted_by_the_last_outcome_what_failed_comes_first(client: Client) -> None:
    assert names(client, "?o=6") == ["failing", "running", "mended", "skipping", "new"]
    assert names(client, "?o=-6")[-1] == "failing"


def test_sorted_and_filtered_by_status(client: Client) -> None:
    TaskState.objects.filter(task__name="mended").update(quarantine="hour: 25 is not accepted", wake_at=None)
    TaskOptions.objects.create(task=PeriodicTask.objects.get(name="running"), paused=True)
    PeriodicTask.objects.filter(name="new").update(enabled=False)
    PeriodicTask.objects.filter(name="skipping").update(enabled=False, one_off=True)
    order = ["mended", "running", "new", "skipping", "failing"]
    assert names(client, "?o=2") == order
    assert names(client, "?o=-2") == order[::-1]
    for key, name in zip(("quarantined", "paused", "off", "finished", "on"), order, strict=True):
        assert names(client, f"?status={key}") == [name], key


def test_sorted_and_filtered_by_the_other_columns(client: Client) -> None:
    daily = CrontabSchedule.objects.create(minute="0", hour="10")
    other = PeriodicTask.objects.create(name="other", task="shop.other", crontab=daily)
    TaskOptions.objects.create(task=other, origin="code")
    TaskState.objects.filter(task__name="failing").update(wake_at=NOW - timedelta(minutes=1))
    assert names(client, "?o=-3")[0] == "other", "by the kind of schedule"
    assert names(client, "?o=8")[0] == "other", "by the origin"
    assert names(client, "?o=-7")[0] == "skipping", "by what is sent"
    assert names(client, "?o=4")[0] == "failing", "by the next run"
    assert names(client, "?kind=crontab") == names(client, "?origin=code") == ["other"]
    assert "other" not in names(client, "?origin=admin")
    assert names(client, "?next=none") == ["other"], "nobody has planned it yet"
    assert names(client, "?next=overdue") == ["failing"]
    assert set(names(client, "?next=1h")) == set(RUNS)
    assert set(names(client, "?ran=never")) == {"new", "other"}
    assert set(names(client, "?ran=1h")) == {"failing", "mended", "running"}
    assert names(client, "?ran=before") == []
    assert names(client, "?task=shop.new") == ["new"]


@pytest.mark.parametrize(
    ("words", "found"),
    [("FAIL", ["failing"]), ("shop new", ["new"]), ('"n\nshop"', []), ("50%", ["odd"]), ("ψ", ["odd"]), ("Ω", [])],
)
def test_a_search_looks_into_each_field_in_whatever_case(client: Client, words: str, found: list[str]) -> None:
    PeriodicTask.objects.create(
        name="odd", task="x", args='["50% ψ"]', interval=IntervalSchedule.objects.get(), kwargs="{}"
    )
    response = client.get(reverse("admin:django_celery_beat_periodictask_changelist"), {"q": words})
    assert [task.name for task in response.context["cl"].result_list] == found


def test_what_no_index_finds_is_looked_for_among_the_newest_and_the_page_says_so(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def states(query: str) -> list[str]:
        return sorted(row.state for row in listed(client, query, "occurrence"))

    assert states("?state=succeeded") == ["succeeded"] * 4
    monkeypatch.setattr(OccurrenceList, "NEWEST", 3)
    assert states("?state=succeeded") == ["succeeded"]
    assert states("") == sorted(state for runs in RUNS.values() for state in runs), "all of them, in their own order"
    task = PeriodicTask.objects.get(name="mended")
    assert states(f"?task__id__exact={task.pk}") == ["failed", "succeeded"], "the newest of one task are all of its"
    page = client.get(reverse("admin:django_celery_beat_occurrence_changelist"), {"state": "sent"})
    assert "among the newest 3" in page.content.decode()
