"""Actions on many: a bounded portion in each request, each task a transaction of its own, tried again on a conflict."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connection, connections, transaction
from django.test import Client

from onebeat.admin import actions
from onebeat.models import Action, PeriodicTask
from tests.admin.browser_forms import sent
from tests.admin.rows import every, page

LIST = "periodictask_changelist"


def crowd(count: int) -> list[PeriodicTask]:
    return PeriodicTask.objects.bulk_create(
        [PeriodicTask(name=f"task {n:03}", task="shop.report", interval=every()) for n in range(count)]
    )


def said(response: Any) -> list[str]:
    return [str(message) for message in response.context["messages"]]


def all_of_them(action: str, **given: str) -> dict[str, Any]:
    """What the list sends when somebody has selected all, over all pages, and the page that asked was answered."""
    first = PeriodicTask.objects.values_list("pk", flat=True).first()
    return {"action": action, "select_across": "1", "_selected_action": [first], "post": "yes", "why": "move", **given}


@pytest.mark.django_db
def test_all_of_many_are_treated_a_portion_in_each_request(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "PORTION", 4)
    crowd(10)
    left = [10]
    response = client.post(page(LIST), all_of_them("disable"))
    pages = 0
    while response.status_code == 200:
        pages += 1
        left.append(PeriodicTask.objects.filter(enabled=True).count())
        text = response.content.decode()
        assert f"{10 - left[-1]} tasks so far." in text and "ob-goes-on" in text
        response = client.post(page(LIST), sent(text))
    assert (pages, left) == (2, [10, 6, 2])
    assert said(client.get(response["Location"])) == ["Disable: 10 tasks."]
    assert not PeriodicTask.objects.filter(enabled=True).exists()
    assert set(LogEntry.objects.values_list("change_message", flat=True)) == {"Disabled. move"}
    assert Action.objects.filter(verb="disable", why="move", by="admin").count() == 10


@pytest.mark.django_db
def test_what_an_action_makes_is_not_treated_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "PORTION", 2)
    crowd(3)
    response = client.post(page(LIST), all_of_them("duplicate"))
    while response.status_code == 200:
        response = client.post(page(LIST), sent(response.content.decode()))
    assert PeriodicTask.objects.count() == 6


@pytest.mark.django_db
def test_a_request_begins_no_task_when_its_time_is_up(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "BUDGET_SECONDS", -1.0)
    crowd(2)
    response = client.post(page(LIST), all_of_them("disable"))
    assert "0 tasks so far" in response.content.decode()
    assert PeriodicTask.objects.filter(enabled=True).count() == 2


@pytest.mark.django_db
def test_the_page_that_asks_says_how_many_there_are(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "_COUNTED", 30)
    crowd(40)
    asked = {**all_of_them("disable"), "post": ""}
    assert "and more than 11 more, a portion at a time." in client.post(page(LIST), asked).content.decode()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="a file has one writer, who waits")
def test_a_deadlock_is_no_error_of_the_page(client: Client) -> None:
    """Somebody holds the second task and then wants the first: the database gives one of the two up."""
    first, second = crowd(2)
    # In one transaction of the action both would be held until the end; each by itself meets nobody for long.
    held, gone_on = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def other() -> None:
        try:
            for _ in range(20):
                try:
                    with transaction.atomic():
                        PeriodicTask.objects.filter(pk=second.pk).update(description="a")
                        held.set()
                        gone_on.wait(0.2)
                        PeriodicTask.objects.filter(pk=first.pk).update(description="b")
                    return
                except Exception as error:  # the database may give this one up
                    failures.append(error)
        finally:
            held.set()
            connections.close_all()

    thread = threading.Thread(target=other)
    thread.start()
    assert held.wait(60)
    data = {"action": "disable", "_selected_action": [first.pk, second.pk], "post": "yes", "why": ""}
    response = client.post(page(LIST), data, follow=True)
    gone_on.set()
    thread.join(60)
    assert response.status_code == 200
    assert said(response) == ["Disable: 2 tasks."], failures
    assert not PeriodicTask.objects.filter(enabled=True).exists()


@pytest.mark.parametrize("atomic_requests", [False, True])
@pytest.mark.django_db(transaction=True)
def test_a_conflict_is_tried_again_and_what_does_not_end_is_said(
    client: Client, monkeypatch: pytest.MonkeyPatch, atomic_requests: bool
) -> None:
    """The database's own answers, raised by the database: a lock that another transaction holds."""
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", atomic_requests)
    if connection.vendor != "postgresql":
        pytest.skip("lock_timeout is PostgreSQL's")
    first, second = crowd(2)
    held, done = threading.Event(), threading.Event()

    def other() -> None:
        with transaction.atomic():
            PeriodicTask.objects.select_for_update().get(pk=first.pk)
            held.set()
            done.wait(120)
        connections.close_all()

    thread = threading.Thread(target=other)
    thread.start()
    assert held.wait(60)
    monkeypatch.setattr(actions, "RETRY_SECONDS", 0.2)
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
    data = {"action": "disable", "_selected_action": [first.pk, second.pk], "post": "yes", "why": ""}
    response = client.post(page(LIST), data, follow=True)
    done.set()
    thread.join(60)
    assert set(said(response)) == {
        "Disable: 1 task.",
        "task 000 was left as it is: the database was busy, try again.",
    }
    assert list(PeriodicTask.objects.filter(enabled=True)) == [first]


@pytest.mark.django_db
def test_the_old_pages_actions_need_the_permission_to_change() -> None:
    from django.contrib.admin import AdminSite
    from django.test import RequestFactory

    from onebeat.compat.admin import PeriodicTaskAdmin

    clerk = User.objects.create_user("clerk", is_staff=True)
    clerk.user_permissions.add(Permission.objects.get(codename="view_periodictask"))
    request = RequestFactory().get("/")
    request.user = clerk
    assert set(PeriodicTaskAdmin(PeriodicTask, AdminSite()).get_actions(request)) <= {"delete_selected"}
