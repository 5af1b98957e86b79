"""What pages may do and must not: nothing on GET, nothing without permission, nothing that is secret shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from onebeat.core import clock
from onebeat.models import IntervalSchedule, Occurrence, PeriodicTask, TaskOptions
from onebeat.store import plans

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 27, 9, tzinfo=UTC)
LIST = "periodictask_changelist"


@pytest.fixture(autouse=True)
def pinned() -> Any:
    with clock.pin(NOW):
        yield


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("anna"))
    return client


def url(name: str, *args: Any) -> str:
    return reverse(f"admin:django_celery_beat_{name}", args=args)


def task(name: str = "One", **fields: Any) -> PeriodicTask:
    every, _ = IntervalSchedule.objects.get_or_create(every=5, period="minutes")
    made = PeriodicTask.objects.create(**{"name": name, "task": "shop.report", "interval": every, **fields})
    plans.consume("default", 500)
    return made


def act(client: Client, action: str, *tasks: PeriodicTask, **given: str) -> Any:
    keys = [task.pk for task in tasks]
    data = {"action": action, "_selected_action": keys, "post": "yes", "why": "because", **given}
    return client.post(url(LIST), data, follow=True)


def said(response: Any) -> list[str]:
    return [str(message) for message in response.context["messages"]]


def writes(seen: CaptureQueriesContext) -> list[str]:
    words = ("INSERT", "UPDATE", "DELETE")
    return [one["sql"] for one in seen.captured_queries if one["sql"].startswith(words) and "session" not in one["sql"]]


def test_nothing_acts_on_get_nor_before_it_was_asked(client: Client) -> None:
    one = task()
    with CaptureQueriesContext(connection) as seen:
        for name in ("run_now", "pause", "resume", "skip_next", "duplicate", "enable", "disable"):
            assert client.get(url("periodictask_act", one.pk, name)).status_code == 200
            asked = {"action": name, "_selected_action": [one.pk]}
            assert "ob-act" in client.post(url(LIST), asked).content.decode()
            client.get(url(LIST), {**asked, "post": "yes"})
        for name in (LIST, "periodictask_overview", "occurrence_changelist"):
            client.get(url(name))
    assert client.get(url("periodictask_act", one.pk, "explode")).status_code == 404
    assert client.get(url("periodictask_preview")).status_code == 405
    assert writes(seen) == []


def test_each_action_does_it_and_leaves_who_and_why(client: Client) -> None:
    one = task()
    assert said(act(client, "pause", one, until_0="2026-03-28", until_1="09:00:00")) == ["Pause: 1 task."]
    assert TaskOptions.objects.get(pk=one.pk).paused_until == NOW + timedelta(days=1)
    assert said(act(client, "resume", one, catch_up="none")) == ["Resume: 1 task."]
    assert not TaskOptions.objects.get(pk=one.pk).paused
    act(client, "run_now", one)
    assert Occurrence.objects.get(run=1).state == "claimed"
    act(client, "skip_next", one)
    assert Occurrence.objects.get(run=0).reason == "cancelled"
    act(client, "disable", one)
    one.refresh_from_db()
    assert not one.enabled
    act(client, "enable", one)
    one.refresh_from_db()
    assert one.enabled
    lines = list(LogEntry.objects.filter(object_id=str(one.pk)).order_by("pk").values_list("change_message", flat=True))
    assert len(lines) == 6 and all(line.endswith(". because") for line in lines)
    assert {entry.user.get_username() for entry in LogEntry.objects.all()} == {"anna"}


def test_a_pause_that_has_passed_is_refused_on_its_field(client: Client) -> None:
    one = task()
    response = act(client, "pause", one, until_0="2026-03-26", until_1="09:00:00")
    assert "This time has passed" in response.content.decode()
    assert not TaskOptions.objects.filter(paused=True).exists()


def test_a_copy_has_everything_and_is_off(client: Client) -> None:
    one = task(args="[1]", description="notes")
    TaskOptions.objects.create(task=one, missed="skip", paused=True, paused_why="no")
    for _ in range(2):
        act(client, "duplicate", one)
    copies = PeriodicTask.objects.exclude(pk=one.pk).order_by("pk")
    assert [copy.name for copy in copies] == ["One (copy)", "One (copy 2)"]
    for copy in copies:
        assert (copy.enabled, copy.args, copy.description, copy.interval) == (False, "[1]", "notes", one.interval)
        assert (copy.onebeat_options.missed, copy.onebeat_options.paused) == ("skip", False)


def test_actions_need_their_permission() -> None:
    one, clerk = task(), User.objects.create_user("clerk", is_staff=True)
    clerk.user_permissions.add(Permission.objects.get(codename="view_periodictask"))
    client = Client()
    client.force_login(clerk)
    for name in ("run_now", "pause", "disable", "duplicate"):
        act(client, name, one)
        assert client.get(url("periodictask_act", one.pk, name)).status_code == 403
    assert client.post(url("periodictask_preview"), {"onebeat_object": one.pk, "kind": "interval"}).status_code == 403
    one.refresh_from_db()
    assert one.enabled and PeriodicTask.objects.count() == 1 and not Occurrence.objects.exists()
    assert not TaskOptions.objects.exists()


def test_a_preview_writes_nothing(client: Client) -> None:
    data = {
        "name": "New",
        "task": "shop.report",
        "args": "[]",
        "kwargs": "{}",
        "headers": "{}",
        "enabled": "on",
        "kind": "interval",
        "interval_every": "7",
        "interval_period": "minutes",
        "onebeat_zone": "Asia/Tokyo",
    }
    with CaptureQueriesContext(connection) as seen:
        text = client.post(url("periodictask_preview"), data).content.decode()
    assert "Every 7 minutes" in text and "2026-03-27 18:07:00" in text, "the viewer's wall clock"
    assert writes(seen) == [] and not IntervalSchedule.objects.exists()


def test_secrets_are_masked_and_kept(client: Client, settings: Any) -> None:
    settings.ONEBEAT = {"secret_words": "password token"}
    one = task(kwargs='{"db": {"Password": "hunter2"}, "full": true}', args='["x", {"api_token": "t0k"}]')
    there = url("periodictask_change", one.pk)
    text = client.get(there).content.decode()
    assert "hunter2" not in text and "t0k" not in text and "********" in text
    form = {
        "name": "One",
        "task": "shop.report",
        "enabled": "on",
        "headers": "{}",
        "args": '["y", {"api_token": "********"}]',
        "kwargs": '{"db": {"Password": "********"}, "full": false}',
        "kind": "interval",
        "interval_every": "5",
        "interval_period": "minutes",
        "onebeat_options-TOTAL_FORMS": "0",
        "onebeat_options-INITIAL_FORMS": "0",
    }
    assert client.post(there, form).status_code == 302
    one.refresh_from_db()
    assert json.loads(one.kwargs) == {"db": {"Password": "hunter2"}, "full": False}
    assert json.loads(one.args) == ["y", {"api_token": "t0k"}]

    clerk = User.objects.create_user("clerk", is_staff=True)
    clerk.user_permissions.add(Permission.objects.get(codename="view_periodictask"))
    client.force_login(clerk)
    assert "hunter2" not in client.get(there).content.decode()


def test_neither_a_search_nor_a_filter_tells_what_is_masked(client: Client, settings: Any) -> None:
    settings.ONEBEAT = {"secret_words": "password token"}
    task("nested", kwargs='{"db": {"Password": "hunter2"}, "shop": "north"}')
    task("list", args='["north", {"api_token": "hunter2"}]')
    task("escaped", kwargs='{"p\\u0061ssword": "hunter2", "shop": "north"}')
    task("open", kwargs='{"shop": "north", "note": "hunter2"}')

    def found(**query: str) -> list[str]:
        response = client.get(url(LIST), query)
        return [row.name for row in response.context["cl"].result_list] if response.status_code == 200 else ["refused"]

    assert found(q="hunter2") == found(q="hunter") == found(q='"shop": "north"') == ["open"]
    assert found(q="nested") == ["nested"] and found(q="shop.report hunter2") == ["open"]
    for lookup in ("contains", "startswith", "regex", "gt"):
        assert found(**{f"kwargs__{lookup}": "hunter2"}) == ["refused"], lookup
    assert found(args='["north", {"api_token": "hunter2"}]') == ["refused"]
    settings.ONEBEAT = {"secret_words": "пароль"}
    assert found(q="hunter2") == [] and found(q="open") == ["open"], "letter case of such words is each database's own"
    settings.ONEBEAT = {"secret_words": ""}
    assert set(found(q="hunter2")) == {"nested", "list", "escaped", "open"}
