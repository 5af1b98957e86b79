"""The basic admin, through Django's test client."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.test.utils import override_settings

from onebeat.models import (
    Action,
    Beat,
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    Occurrence,
    PeriodicTask,
    SolarSchedule,
    TaskOptions,
    TaskState,
)
from onebeat.store import plans
from tests.admin.rows import AT, every, page

pytestmark = pytest.mark.django_db
EMPTY = {
    "onebeat_options-TOTAL_FORMS": "0",
    "onebeat_options-INITIAL_FORMS": "0",
}
CRON = {
    "kind": "crontab",
    **{f"crontab_{name}": "*" for name in ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")},
    "crontab_timezone": "Europe/Paris",
}


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
    plans.consume("default", 100)
    before = TaskState.objects.get(pk=task.pk)

    assert client.post(page("periodictask_change", task.pk), task_form(every(7))).status_code == 302
    plans.consume("default", 100)

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
