"""The basic admin, through Django's test client."""

from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings
from django.urls import reverse
from django.utils import timezone

from onebeat.models import (
    Action,
    Beat,
    Change,
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    Occurrence,
    PeriodicTask,
    SolarSchedule,
    TaskOptions,
    TaskState,
)
from onebeat.store import plan, vendors

pytestmark = pytest.mark.django_db
AT = datetime(2026, 3, 28, 9, tzinfo=UTC)
EMPTY = {
    "onebeat_options-TOTAL_FORMS": "0",
    "onebeat_options-INITIAL_FORMS": "0",
}
CRON = {
    "kind": "crontab",
    **{f"crontab_{name}": "*" for name in ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")},
    "crontab_timezone": "Europe/Paris",
}


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))
    return client


def page(name: str, *args: Any) -> str:
    return reverse(f"admin:django_celery_beat_{name}", args=args)


def task_form(schedule: Any = None, **values: Any) -> dict[str, Any]:
    """What the form sends; `schedule`: a row whose kind and value are filled in, every 30 seconds if there is none."""
    row = schedule or IntervalSchedule(every=30, period="seconds")
    fields = {f"{row.KIND}_{name}": str(getattr(row, name)) for name in row.VALUE}
    if row.KIND == "clocked":
        fields = {"clocked_clocked_time_0": f"{row.clocked_time:%Y-%m-%d}", "clocked_clocked_time_1": "09:00:00"}
    return {
        "name": "report",
        "task": "shop.report",
        "enabled": "on",
        "args": "[]",
        "kwargs": "{}",
        "headers": "{}",
        "kind": row.KIND,
        **fields,
        **EMPTY,
        **values,
    }


def errors(response: Any) -> dict[str, list[str]]:
    assert response.status_code == 200, "the form was accepted"
    return dict(response.context["adminform"].form.errors)


def every(seconds: int = 30) -> IntervalSchedule:
    return IntervalSchedule.objects.get_or_create(every=seconds, period="seconds")[0]


@pytest.mark.parametrize("model", [model for model in admin.site._registry if model._meta.app_label != "auth"])
def test_every_page_opens(client: Client, model: Any) -> None:
    name = model._meta.model_name
    if model._meta.app_label != "django_celery_beat":
        pytest.skip("not ours")
    assert client.get(page(f"{name}_changelist")).status_code == 200
    assert client.get(page(f"{name}_changelist"), {"q": "9"}).status_code == 200
    expected = 403 if model in (Action, Occurrence, TaskState, Beat) else 200
    assert client.get(page(f"{name}_add")).status_code == expected


@pytest.mark.parametrize(
    ("model", "form", "words"),
    [
        (IntervalSchedule, {"every": "5", "period": "minutes"}, "every 5 minutes"),
        (
            CrontabSchedule,
            {
                "minute": "0",
                "hour": "9",
                "day_of_month": "*",
                "month_of_year": "*",
                "day_of_week": "mon-fri",
                "timezone": "Europe/Paris",
            },
            "at 09:00, on Monday to Friday (Europe/Paris)",
        ),
        (
            SolarSchedule,
            {"event": "sunset", "latitude": "48.85", "longitude": "2.35"},
            "at sunset at 48.85, 2.35",
        ),
        (
            ClockedSchedule,
            {"clocked_time_0": "2026-03-28", "clocked_time_1": "09:00:00"},
            "once at 2026-03-28 09:00:00 UTC",
        ),
    ],
)
def test_a_schedule_and_a_task_on_it(client: Client, model: Any, form: dict[str, str], words: str) -> None:
    name = model._meta.model_name
    assert client.post(page(f"{name}_add"), form).status_code == 302
    schedule = model.objects.get()
    assert client.post(page(f"{name}_add"), form).status_code == 302, "the same value again is the same row"
    assert model.objects.get() == schedule

    values = task_form(schedule, args='["a", 1]', kwargs='{"full": true}')
    response = client.post(page("periodictask_add"), values)

    assert response.status_code == 302, errors(response)
    task = PeriodicTask.objects.get()
    assert task.scheduler == schedule
    assert (task.args, task.kwargs) == ('["a", 1]', '{"full": true}')
    assert not TaskOptions.objects.exists(), "options that nobody touched make no row"
    assert words in client.get(page("periodictask_changelist")).content.decode()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"interval_every": ""}, "interval_every"),
        ({"interval_every": "1.5"}, "interval_every"),
        ({**CRON, "crontab_minute": "*/5-20"}, "crontab_minute"),
        ({**CRON, "crontab_hour": ""}, "crontab_hour"),
        ({**CRON, "crontab_day_of_month": "31", "crontab_month_of_year": "2"}, "crontab_day_of_month"),
        ({**CRON, "crontab_timezone": "Europe/Parys"}, "crontab_timezone"),
        ({"kind": "solar", "solar_event": "sunset", "solar_latitude": "91", "solar_longitude": "0"}, "solar_latitude"),
        ({"kind": "clocked", "clocked_clocked_time_0": "soon"}, "clocked_clocked_time"),
        ({"args": "{}"}, "args"),
        ({"kwargs": "[1]"}, "kwargs"),
        ({"headers": "nonsense"}, "headers"),
        ({"priority": "256"}, "priority"),
        ({"expires_0": "2026-03-28", "expires_1": "09:00", "expire_seconds": "9"}, "expire_seconds"),
        ({"name": "taken"}, "name"),
    ],
)
def test_an_error_shows_on_its_field(client: Client, changes: dict[str, str], field: str) -> None:
    PeriodicTask.objects.create(name="taken", task="shop.report", interval=every())
    response = client.post(page("periodictask_add"), task_form(**changes))
    assert set(errors(response)) == {field}
    assert PeriodicTask.objects.count() == 1


def test_a_task_gets_the_one_row_of_its_schedule_and_only_it_changes(client: Client) -> None:
    shared = every(30)
    other = PeriodicTask.objects.create(name="other", task="shop.report", interval=shared)
    assert client.post(page("periodictask_add"), task_form()).status_code == 302
    task = PeriodicTask.objects.get(name="report")
    assert task.interval == shared, "no second row"

    url = page("periodictask_change", task.pk)
    assert client.post(url, task_form(interval_every="45")).status_code == 302
    task.refresh_from_db(), other.refresh_from_db()
    assert (task.interval.every, other.interval) == (45, shared)

    clocked = ClockedSchedule(clocked_time=AT)
    assert client.post(url, task_form(clocked)).status_code == 302
    task.refresh_from_db()
    assert (task.interval, task.clocked.clocked_time, task.one_off) == (None, AT, True)


@pytest.mark.parametrize(
    ("model", "form", "field"),
    [
        ("intervalschedule", {"every": "0", "period": "days"}, "every"),
        (
            "crontabschedule",
            {
                "minute": "0",
                "hour": "0",
                "day_of_month": "31",
                "month_of_year": "2",
                "day_of_week": "*",
                "timezone": "UTC",
            },
            "day_of_month",
        ),
        ("solarschedule", {"event": "sunset", "latitude": "91", "longitude": "0"}, "latitude"),
        ("clockedschedule", {"clocked_time_0": "soon", "clocked_time_1": "09:00"}, "clocked_time"),
    ],
)
def test_a_bad_schedule_is_refused(client: Client, model: str, form: dict[str, str], field: str) -> None:
    assert set(errors(client.post(page(f"{model}_add"), form))) == {field}


@pytest.mark.parametrize("use_tz", [True, False])
def test_options_are_set_changed_and_shown_in_local_time(client: Client, use_tz: bool) -> None:
    zone = {"USE_TZ": use_tz, "TIME_ZONE": "Europe/Paris"}
    with override_settings(**zone):
        task = PeriodicTask.objects.create(name="report", task="shop.report", interval=every())
        values = task_form()
        inline = {
            "onebeat_options-TOTAL_FORMS": "1",
            "onebeat_options-0-task": task.pk,
            "onebeat_options-0-missed": "skip",
            "onebeat_options-0-grace_seconds": "60",
            "onebeat_options-0-jitter_seconds": "0",
            "onebeat_options-0-overlap": "allow",
            "onebeat_options-0-overlap_limit_seconds": "3600",
            "onebeat_options-0-paused": "on",
            "onebeat_options-0-paused_until_0": "2026-03-28",
            "onebeat_options-0-paused_until_1": "10:00:00",
        }
        url = page("periodictask_change", task.pk)
        assert client.post(url, {**values, **inline}).status_code == 302
        options = TaskOptions.objects.get(task=task)
        assert (options.missed, options.grace_seconds, options.paused_until) == ("skip", 60, AT)

        shown = client.get(url).content.decode()
        assert 'name="onebeat_options-0-paused_until_1" value="10:00:00"' in shown

        again = {**inline, "onebeat_options-INITIAL_FORMS": "1", "onebeat_options-0-grace_seconds": ""}
        assert client.post(url, {**values, **again}).status_code == 302
        options.refresh_from_db()
        assert (options.grace_seconds, options.paused_until) == (None, AT)


def test_the_engine_sees_a_change(client: Client) -> None:
    task = PeriodicTask.objects.create(name="report", task="shop.report", interval=every(30))
    plan.consume("default", 100)
    before = TaskState.objects.get(pk=task.pk)

    assert client.post(page("periodictask_change", task.pk), task_form(every(7))).status_code == 302
    plan.consume("default", 100)

    after = TaskState.objects.get(pk=task.pk)
    assert (before.rule, after.rule) == ("30 seconds", "7 seconds")


def test_a_schedule_that_tasks_share_is_not_deleted(client: Client) -> None:
    schedule = every()
    for name in ("first", "second"):
        PeriodicTask.objects.create(name=name, task="shop.report", interval=schedule)
    url = page("intervalschedule_delete", schedule.pk)

    text = client.get(url).content.decode()
    assert "protected" in text and "first" in text and "second" in text
    client.post(url, {"post": "yes"})
    bulk = {"action": "delete_selected", "_selected_action": schedule.pk, "post": "yes"}
    assert "protected" in client.post(page("intervalschedule_changelist"), bulk).content.decode()
    assert IntervalSchedule.objects.get() == schedule
    assert PeriodicTask.objects.count() == 2

    PeriodicTask.objects.get(name="first").delete()
    assert client.post(url, {"post": "yes"}).status_code == 302
    assert not IntervalSchedule.objects.exists() and not PeriodicTask.objects.exists()


def test_a_task_is_deleted_with_its_options(client: Client) -> None:
    task = PeriodicTask.objects.create(name="report", task="shop.report", interval=every())
    TaskOptions.objects.create(task=task)
    assert client.post(page("periodictask_delete", task.pk), {"post": "yes"}).status_code == 302
    assert not PeriodicTask.objects.exists() and not TaskOptions.objects.exists()
    assert IntervalSchedule.objects.exists()


def fill(count: int) -> None:
    """So many tasks of each kind, planned, with a row of the ledger each."""
    start = PeriodicTask.objects.count()
    for number in range(start, start + count):
        at = AT + timedelta(days=36500, minutes=number)
        kinds: list[dict[str, Any]] = [
            {"interval": every(number + 1)},
            {
                "crontab": CrontabSchedule.objects.get_or_create(
                    minute=str(number % 60), hour=str(number // 60), day_of_month="L"
                )[0]
            },
            {"clocked": ClockedSchedule.objects.get_or_create(clocked_time=at)[0], "one_off": True},
        ]
        for kind in kinds:
            task = PeriodicTask.objects.create(name=f"{number} {next(iter(kind))}", task="shop.report", **kind)
            Occurrence.objects.create(
                task=task,
                task_name=task.name,
                due_at=AT,
                state="sent",
                celery_task_id=uuid.uuid4(),
                decided_at=AT,
                sent_at=AT,
            )
        Beat.objects.create(host="here", pid=number, version="1", started_at=AT, seen_at=AT)
    while plan.consume("default", 500):
        pass


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
        with CaptureQueriesContext(vendors.connection("default")) as seen:
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
        [Occurrence(task=task, task_name=task.name, celery_task_id=uuid.uuid4(), **sent) for task in tasks],
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
def test_the_list_shows_what_is_next_and_what_is_set_aside(client: Client, use_tz: bool) -> None:
    good = PeriodicTask.objects.create(name="good", task="shop.report", crontab=CrontabSchedule.objects.create())
    bad = PeriodicTask.objects.create(name="bad", task="shop.report", interval=every())
    unplanned = PeriodicTask.objects.create(name="new", task="shop.report", interval=every())
    _empty(bad)
    plan.consume("default", 500)
    TaskState.objects.filter(pk=unplanned.pk).delete()
    TaskState.objects.filter(pk=good.pk).update(due_at=AT)
    with override_settings(USE_TZ=use_tz, TIME_ZONE="Europe/Paris"):
        text = client.get(page("periodictask_changelist")).content.decode()
    assert "2026-03-28 10:00:00" in text
    assert "set aside" in text and "schedule: the task has no schedule" in text
    assert "every 30 seconds" in text


def _empty(task: PeriodicTask) -> None:
    """A broken row, as raw SQL makes one."""
    with vendors.connection("default").cursor() as cursor:
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


def test_permissions_are_the_old_ones() -> None:
    clerk = User.objects.create_user("clerk", is_staff=True)
    client = Client()
    client.force_login(clerk)
    assert client.get(page("periodictask_changelist")).status_code == 403
    clerk.user_permissions.add(Permission.objects.get(codename="view_periodictask"))
    assert client.get(page("periodictask_changelist")).status_code == 200


def test_names_that_projects_import() -> None:
    from onebeat.admin import PeriodicTaskAdmin, PeriodicTaskForm

    class Own(PeriodicTaskForm):
        class Meta(PeriodicTaskForm.Meta):
            fields = ["name", "task"]

    registered = admin.site._registry[PeriodicTask]
    assert type(registered) is PeriodicTaskAdmin and registered.form is PeriodicTaskForm
    form = Own({"name": "report", "task": "shop.report"})
    assert "Choose a schedule" in str(form.non_field_errors()), "a rule about a field that the form leaves out"
