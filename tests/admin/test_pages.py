"""The admin's lists: what they show, what may be changed there, and how many statements they take."""

from __future__ import annotations

import os
import uuid
from datetime import timedelta

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings
from django.utils import timezone

from onebeat.models import Beat, Change, CrontabSchedule, Occurrence, PeriodicTask, TaskState
from onebeat.store import plans
from tests.admin.rows import AT, every, fill, page

pytestmark = pytest.mark.django_db

#: Each page, with the most statements that it may take.
PAGES = {
    "periodictask_changelist": 14,
    "periodictask_changelist?o=4": 14,
    "periodictask_changelist?o=5.6": 14,
    "periodictask_changelist?q=report": 14,
    "periodictask_changelist?o=2": 17,
    "periodictask_changelist?o=6": 15,
    "periodictask_changelist?status=on": 15,
    "periodictask_changelist?outcome=failed&late=60": 16,
    "periodictask_changelist?kind=crontab": 14,
    "periodictask_overview": 24,
    "occurrence_changelist": 12,
    "occurrence_changelist?state=sent": 12,
    "occurrence_changelist?q=9": 12,
    "taskstate_changelist": 12,
    "beat_changelist": 12,
    "intervalschedule_changelist": 12,
    "crontabschedule_changelist": 12,
    "clockedschedule_changelist": 12,
}


@pytest.mark.skipif(os.environ.get("ONEBEAT_TEST_DB", "sqlite") != "sqlite", reason="the same on every database")
def test_a_page_takes_the_same_statements_at_ten_rows_and_at_ten_thousand(client: Client) -> None:
    def statements(name: str) -> int:
        path, _, query = name.partition("?")
        with CaptureQueriesContext(connections["default"]) as seen:
            assert client.get(f"{page(path)}?{query}").status_code == 200
        return len(seen)

    fill(4)
    for name in PAGES:
        statements(name)  # what a process looks up once
    few = {name: statements(name) for name in PAGES}
    crowd()
    many = {name: statements(name) for name in PAGES}

    # A list that does not fit on its first page is counted, and its page is looked up: two statements more at most.
    assert {name: (few[name], many[name]) for name in PAGES if not few[name] <= many[name] <= few[name] + 3} == {}
    assert {name: count for name, count in many.items() if count > PAGES[name]} == {}


def crowd() -> None:
    """Ten thousand tasks more, on a hundred schedules, with a plan and a row of the ledger each."""
    schedules = [every(n) for n in range(1000, 1100)]
    PeriodicTask._base_manager.bulk_create(
        [
            PeriodicTask(name=f"crowd {n}", task="shop.report", args=f"[{n}]", interval=schedules[n % 100])
            for n in range(10_000)
        ],
        batch_size=1000,
    )
    tasks = list(PeriodicTask.objects.filter(name__startswith="crowd"))
    due = timezone.now() + timedelta(hours=1)
    plans = {"due_at": due, "wake_at": due, "anchor": AT, "enabled": True, "one_off": False, "rule": "1 hours"}
    TaskState.objects.bulk_create(
        [TaskState(task=task, interval=task.interval_id, **plans) for task in tasks], batch_size=1000
    )
    sent = {"due_at": AT, "decided_at": AT, "sent_at": AT, "state": "sent"}
    Occurrence.objects.bulk_create(
        [
            Occurrence(task=task, task_uid=task.pk, task_name=task.name, celery_task_id=uuid.uuid4(), **sent)
            for task in tasks
        ],
        batch_size=1000,
    )
    Change.objects.all().delete()


def test_more_rows_than_are_counted_are_said_to_be_more(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebeat.admin.listing.BoundedPaginator.LIMIT", 60)
    for number in range(62):
        PeriodicTask.objects.create(name=f"task {number:02}", task="shop.report", interval=every())
    text = client.get(page("periodictask_changelist")).content.decode()
    assert "more than 60 periodic tasks" in text
    rows = client.get(page("periodictask_changelist"), {"p": "2"}).context["cl"].result_list
    assert [task.name for task in rows] == [f"task {number}" for number in range(50, 62)]
    found = client.get(page("periodictask_changelist"), {"q": "task 61"})
    assert [task.name for task in found.context["cl"].result_list] == ["task 61"]


@pytest.mark.parametrize("use_tz", [True, False])
def test_the_list_shows_what_is_next_and_what_is_quarantined(client: Client, use_tz: bool) -> None:
    good = PeriodicTask.objects.create(name="good", task="shop.report", crontab=CrontabSchedule.objects.create())
    bad = PeriodicTask.objects.create(name="bad", task="shop.report", interval=every())
    unplanned = PeriodicTask.objects.create(name="new", task="shop.report", interval=every())
    _empty(bad)
    plans.consume("default", 500)
    TaskState.objects.filter(pk=unplanned.pk).delete()
    TaskState.objects.filter(pk=good.pk).update(due_at=AT)
    with override_settings(USE_TZ=use_tz, TIME_ZONE="Europe/Paris"):
        text = client.get(page("periodictask_changelist")).content.decode()
    assert "2026-03-28 10:00:00" in text
    assert "quarantined" in text and "schedule: the task has no schedule" in text
    assert "every 30 seconds" in text


def _empty(task: PeriodicTask) -> None:
    """A broken row, as raw SQL makes one."""
    with connections["default"].cursor() as cursor:
        cursor.execute("UPDATE django_celery_beat_periodictask SET interval_id = NULL WHERE id = %s", [task.pk])


def test_rows_of_tasks_that_are_gone_stay_readable(client: Client) -> None:
    fill(1)
    PeriodicTask.objects.all().delete()
    for model in (Occurrence, TaskState):
        name = model._meta.model_name
        response = client.get(page(f"{name}_changelist"))
        assert len(response.context["cl"].result_list) == 3
        one = model._base_manager.values_list("pk", flat=True).first()
        assert client.get(page(f"{name}_change", one)).status_code == 200


def test_the_engines_tables_are_only_read(client: Client) -> None:
    fill(1)
    for model in (Occurrence, TaskState, Beat):
        name, one = model._meta.model_name, model._base_manager.values_list("pk", flat=True).first()
        before = list(model._base_manager.values())
        assert client.get(page(f"{name}_change", one)).status_code == 200
        assert client.post(page(f"{name}_change", one), {"version": "7"}).status_code == 403
        assert client.post(page(f"{name}_delete", one), {"post": "yes"}).status_code == 403
        assert list(model._base_manager.values()) == before


def test_the_overview_says_of_each_scheduler_why_it_cannot_send(client: Client) -> None:
    said = {
        "": "starting",
        Beat.Unable.BROKER_UNAVAILABLE: "its broker is away",
        Beat.Unable.BROKER_REFUSES: "its broker accepts no message",
        Beat.Unable.STANDBY: "on standby for another beat",
        Beat.Unable.CLASSIC: "in classic mode",
    }
    now = timezone.now()
    for number, reason in enumerate(said):
        Beat.objects.create(host="web", pid=number, started_at=now, seen_at=now, unable_reason=reason)
    Beat.objects.create(host="web", pid=9, started_at=now, seen_at=now, able_since=now)
    found = client.get(page("periodictask_overview"))
    words = {one["row"].pid: str(one["word"]) for one in found.context["schedulers"]}
    assert words == {**dict(enumerate(said.values())), 9: "at work"}
    assert {*said} == {"", *Beat.Unable.values}
    # A scheduler that cannot send is at work all the same, as `status` and `health` count it.
    assert "<b>6</b> schedulers at work" in found.content.decode()
