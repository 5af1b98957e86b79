"""A form that is loaded and saved as it is writes nothing, whatever stands in the row: every form of ours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings

from onebeat.core import clock
from onebeat.models import (
    Change,
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
    TaskOptions,
    TaskState,
)
from onebeat.store import plans
from tests.admin.browser_forms import sent
from tests.admin.rows import every, page

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 27, 9, tzinfo=UTC)
ODD = datetime(2026, 4, 1, 12, 30, 15, 123456, tzinfo=UTC)
#: The second 01:30 of the autumn in New York: its wall clock alone means the first.
SECOND = datetime(2026, 11, 1, 6, 30, 0, 7, tzinfo=UTC)


@pytest.fixture(autouse=True)
def pinned() -> Any:
    with clock.pin(NOW):
        yield


def raw(model: Any, pk: int, **values: Any) -> None:
    """Write past every rule, as old rows were written."""
    table, columns = model._meta.db_table, ", ".join(f"{name} = %s" for name in values)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {columns} WHERE id = %s", [*values.values(), pk])


def rows(*models: Any) -> dict[str, list[dict[str, Any]]]:
    return {model.__name__: list(model._base_manager.order_by("pk").values()) for model in models}


def writes(seen: CaptureQueriesContext) -> list[str]:
    beside = ("session", "django_admin_log", "auth_user")
    asked = [query["sql"] for query in seen.captured_queries]
    found = [sql for sql in asked if sql.startswith(("INSERT", "UPDATE", "DELETE"))]
    return [sql for sql in found if not any(table in sql for table in beside)]


def tasks() -> list[PeriodicTask]:
    crontab = CrontabSchedule.objects.create(minute="5", hour="*/3", timezone="America/New_York")
    solar = SolarSchedule.objects.create(event="sunset", latitude="48.85", longitude="2.35")
    clocked = ClockedSchedule.objects.create(clocked_time=SECOND)
    common = {"task": "shop.report", "description": "two\nlines \r\n", "queue": "", "args": '[1,\n  "x"]'}
    made = [
        PeriodicTask.objects.create(name="interval", interval=every(7), start_time=ODD, expires=SECOND, **common),
        PeriodicTask.objects.create(name="crontab", crontab=crontab, start_time=SECOND, priority=3, **common),
        PeriodicTask.objects.create(name="solar", solar=solar, expire_seconds=9, **common),
        PeriodicTask.objects.create(name="clocked", clocked=clocked, one_off=True, **common),
    ]
    odd = [
        PeriodicTask.objects.create(name=name, interval=every(7), **common)
        for name in ("no schedule", "two schedules", "arguments", "numbers", "spaces", "ends")
    ]
    none, two, arguments, numbers, spaces, ends = (task.pk for task in odd)
    raw(PeriodicTask, none, interval_id=None)
    raw(PeriodicTask, two, crontab_id=crontab.pk)
    raw(PeriodicTask, arguments, args="nonsense", kwargs="[1]", headers="")
    raw(PeriodicTask, numbers, priority=300)
    raw(PeriodicTask, spaces, name=" spaces ", queue=" q ", task=" shop.report")
    raw(PeriodicTask, ends, expires="2027-01-01 00:00:00.000001", expire_seconds=9)
    strange = CrontabSchedule.objects.create(minute="1", hour="1")
    raw(CrontabSchedule, strange.pk, minute="*/5-20", timezone="Nowhere/City", hour="99")
    weeks = IntervalSchedule.objects.create(every=3, period="days")
    raw(IntervalSchedule, weeks.pk, every=-3)
    made += [
        PeriodicTask.objects.create(name="strange", crontab=strange, **common),
        PeriodicTask.objects.create(name="minus", interval=weeks, **common),
    ]
    pause = {"paused": True, "paused_until": ODD, "paused_why": "a\nb"}
    TaskOptions.objects.create(task=made[0], tags="a,b", grace_seconds=0, **pause)
    while plans.consume("default", 100):
        pass
    return [*made, *odd]


@pytest.mark.parametrize("use_tz", [True, False])
def test_every_form_saved_as_it_was_loaded_changes_nothing(client: Client, use_tz: bool) -> None:
    with override_settings(TIME_ZONE="America/New_York"):
        tasks()
        if not use_tz and connection.vendor == "postgresql":
            pytest.skip("a connection keeps its zone")
        with override_settings(USE_TZ=use_tz):
            models = (PeriodicTask, IntervalSchedule, CrontabSchedule, SolarSchedule, ClockedSchedule)
            before, refused = rows(*models, TaskOptions, TaskState), []
            for model in models:
                name = model._meta.model_name
                for pk, text in [(row.pk, str(row)) for row in model._base_manager.all()]:
                    url = page(f"{name}_change", pk)
                    data = sent(client.get(url).content.decode())
                    with CaptureQueriesContext(connection) as seen:
                        response = client.post(url, data)
                    if response.status_code != 302:
                        refused.append((name, text, response.context["errors"]))
                    assert writes(seen) == [], (name, text)
            assert rows(*models, TaskOptions, TaskState) == before
            assert not Change.objects.exists(), "nothing for a scheduler to look at"
            assert refused == []


def test_what_somebody_changed_is_saved_and_the_rest_stays(client: Client) -> None:
    task = tasks()[0]
    state = TaskState.objects.get(pk=task.pk)
    url = page("periodictask_change", task.pk)
    data = sent(client.get(url).content.decode())
    assert client.post(url, {**data, "queue": ["slow"], "onebeat_options-0-tags": ["c"]}).status_code == 302
    while plans.consume("default", 100):
        pass
    task.refresh_from_db()
    assert (task.queue, task.start_time, task.expires) == ("slow", ODD, SECOND)
    assert (task.description, task.args) == ("two\nlines \r\n", '[1,\n  "x"]')
    options = TaskOptions.objects.get(pk=task.pk)
    assert (options.tags, options.paused_until, options.paused_why) == ("c", ODD, "a\nb")
    after = TaskState.objects.get(pk=task.pk)
    assert (after.due_at, after.anchor) == (state.due_at, state.anchor), "the interval's grid did not move"

    clocked = ClockedSchedule.objects.get()
    data = sent(client.get(page("clockedschedule_change", clocked.pk)).content.decode())
    moved = {**data, "clocked_time_1": ["08:00:00"]}
    assert client.post(page("clockedschedule_change", clocked.pk), moved).status_code == 302
    clocked.refresh_from_db()
    assert clocked.clocked_time == SECOND.replace(hour=8, minute=0, microsecond=0)


def test_a_row_that_is_edited_in_the_list_keeps_the_rest(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    task = tasks()[0]
    registered = admin.site._registry[PeriodicTask]
    monkeypatch.setattr(registered, "list_display", ["name", "start_time", "queue"])
    monkeypatch.setattr(registered, "list_editable", ["start_time", "queue"])
    url = page("periodictask_changelist") + "?q=interval"
    data = sent(client.get(url).content.decode())
    before = rows(PeriodicTask)
    assert client.post(url, {**data, "_save": ["Save"]}).status_code == 302
    assert rows(PeriodicTask) == before
    assert client.post(url, {**data, "form-0-queue": ["slow"], "_save": ["Save"]}).status_code == 302
    task.refresh_from_db()
    assert (task.queue, task.start_time) == ("slow", ODD)


def test_the_old_page_keeps_what_nobody_changed(client: Client, rf: Any, admin_user: Any) -> None:
    from onebeat.compat.admin import ClockedScheduleAdmin, PeriodicTaskAdmin

    tasks()
    site = admin.AdminSite("old")
    for model, kind in ((PeriodicTask, PeriodicTaskAdmin), (ClockedSchedule, ClockedScheduleAdmin)):
        old = kind(model, site)
        before = rows(model)
        for row in model._base_manager.filter(
            **({"name__in": ["interval", "clocked"]} if model is PeriodicTask else {})
        ):
            request = rf.get("/")
            request.user = admin_user
            form = old.get_form(request, row, change=True)
            html = f"<form>{form(instance=row).as_p()}</form>"
            bound = form({name: values[-1] for name, values in sent(html).items()}, instance=row)
            assert bound.is_valid(), bound.errors
            old.save_model(request, bound.save(commit=False), bound, True)
        assert rows(model) == before


def test_an_empty_new_form_says_nothing_of_fields_that_nobody_was_in(client: Client) -> None:
    data = sent(client.get(page("periodictask_add")).content.decode())
    text = client.post(page("periodictask_preview"), data).content.decode()
    assert "ob-errors" not in text and "Fill in the schedule" in text
    touched = {**data, "onebeat_touched": "interval_every name"}
    text = client.post(page("periodictask_preview"), touched).content.decode()
    assert text.count("This field is required.") == 2 and "null" not in text
    saved = client.post(page("periodictask_add"), data)
    assert set(saved.context["adminform"].form.errors) == {"name", "task", "interval_every", "interval_period"}
    assert "cannot be null" not in saved.content.decode()


def test_seconds_ago_is_not_a_change_of_somebody_else(client: Client) -> None:
    """What was shown is what the row holds when the form comes back, not what it held when the page was opened."""
    task = tasks()[0]
    url = page("periodictask_change", task.pk)
    data = sent(client.get(url).content.decode())
    PeriodicTask.objects.filter(pk=task.pk).update(start_time=ODD + timedelta(days=1))
    assert client.post(url, data).status_code == 302
    task.refresh_from_db()
    assert task.start_time == ODD.replace(microsecond=0), "the page said so"
