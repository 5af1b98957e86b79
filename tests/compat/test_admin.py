"""django-celery-beat's page of tasks, for those who build their own on it."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from django.contrib.admin import AdminSite
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.auth.models import Permission, User
from django.test import RequestFactory
from django_celery_beat.admin import IntervalScheduleAdmin, PeriodicTaskAdmin

from onebeat.models import Action, IntervalSchedule, PeriodicTask
from tests.engine.kit import Bench, cron, every, task


class Mine(PeriodicTaskAdmin):
    list_display = (*PeriodicTaskAdmin.list_display, "mine")
    fieldsets = PeriodicTaskAdmin.fieldsets + ((None, {"fields": ("date_changed",)}),)  # noqa: RUF005 - as people write
    readonly_fields = PeriodicTaskAdmin.readonly_fields + ("date_changed",)  # noqa: RUF005
    told: ClassVar[list[str]] = []

    def mine(self, obj: Any) -> str:
        return f"mine: {obj.name}"

    def message_user(self, request: Any, message: Any, *args: Any, **kwargs: Any) -> None:
        self.told.append(str(message))


@pytest.fixture
def page(transactional_db: None) -> Mine:
    Mine.told.clear()
    return Mine(PeriodicTask, AdminSite("old"))


def request(**data: Any) -> Any:
    made = RequestFactory().post("/", data) if data else RequestFactory().get("/")
    made.user = User.objects.get_or_create(username="root", is_superuser=True, is_staff=True)[0]
    return made


def test_a_subclass_adds_to_what_was_there(page: Mine) -> None:
    one = task("one", crontab=cron("5", "4"))
    assert "mine: one" in page.changelist_view(request()).render().content.decode()
    shown = page.get_form(request(), one)
    assert {"regtask", "task", "crontab"} <= set(shown.base_fields)
    assert page.crontab_translation(one) and page.crontab_translation(task("no crontab")) == ""


def test_the_registered_name_counts_before_the_typed_one(page: Mine) -> None:
    form = page.get_form(request())
    base = {"name": "new", "interval": every(60).pk, "args": "[]", "kwargs": "{}", "headers": "{}", "enabled": "on"}
    both = form({**base, "regtask": "tests.project.tasks.add", "task": "typed"})
    assert both.is_valid(), both.errors
    assert both.save().task == "tests.project.tasks.add"
    assert "task" in form(base).errors
    assert "args" in form({**base, "task": "typed", "args": "{}"}).errors


def test_the_actions_do_what_they_say(page: Mine, bench: Bench) -> None:
    """By the verbs: a run is the scheduler's message, recorded with who asked for it."""
    for name, enabled in (("a", True), ("b", False)):
        PeriodicTask.objects.create(
            name=name, task="tests.project.tasks.add", interval=every(60), args=[1, 2], enabled=enabled
        )
    rows = PeriodicTask.objects.order_by("name")

    def enabled() -> list[bool]:
        return list(rows.values_list("enabled", flat=True))

    assert page.actions == ("enable_tasks", "disable_tasks", "toggle_tasks", "run_tasks")
    page.toggle_tasks(request(), rows)
    assert enabled() == [False, True]
    page.enable_tasks(request(), rows)
    assert enabled() == [True, True]
    page.disable_tasks(request(), rows)
    assert enabled() == [False, False]
    page.run_tasks(request(), rows)
    bench.tick()
    assert [(name, message.args) for (name, _), message in zip(bench.sent, bench.outbox.messages, strict=True)] == [
        *(("a", [1, 2]), ("b", [1, 2])),
    ]
    assert set(Action.objects.filter(verb="run_now").values_list("task_name", "by")) == {("a", "root"), ("b", "root")}
    task("elsewhere", enabled=False)
    page.run_tasks(request(), rows.all())
    bench.tick()
    assert len(bench.sent) == 2 and page.told[-1] == 'task "tests.engine.add" not found'
    assert page.told[:2] == ["2 tasks were successfully toggled", "2 tasks were successfully enabled"]
    assert page.told[3] == "2 tasks were successfully run"


def test_the_old_pages_show_no_secret_to_who_may_only_look(page: Mine, settings: Any) -> None:
    settings.ONEBEAT = {"secret_words": "password"}
    one = task("one", kwargs='{"password": "hunter2", "shop": "north"}', args='[{"Password": "hunter2"}]')
    clerk = User.objects.create_user("clerk", is_staff=True)
    clerk.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    asked = request()
    asked.user = clerk
    site = AdminSite("old")
    site.register(PeriodicTask, Mine)
    site.register(IntervalSchedule, IntervalScheduleAdmin)
    for shown, row in ((Mine(PeriodicTask, site), one), (IntervalScheduleAdmin(IntervalSchedule, site), one.interval)):
        response = shown.change_view(asked, str(row.pk))
        text = response.render().content.decode()
        assert "north" in text and "hunter2" not in text and "********" in text, shown
    looking = RequestFactory().get("/", {"kwargs__contains": "hunter2"})
    looking.user = request().user
    with pytest.raises(DisallowedModelAdminLookup):
        page.changelist_view(looking)
