"""django-unfold: the admin by the recipe of its documentation."""

from __future__ import annotations

from typing import Any

PACKAGES = ("django-unfold==0.91.0",)
DID = "its documented recipe: list, form, history and actions of each model; a task added and one changed"
SECTION = "django-unfold"
APPS = '"unfold",'
FILES = (
    (
        "shop/admin.py",
        """
from django.contrib import admin
from django_celery_beat.admin import ClockedScheduleAdmin as BaseClockedScheduleAdmin
from django_celery_beat.admin import CrontabScheduleAdmin as BaseCrontabScheduleAdmin
from django_celery_beat.admin import PeriodicTaskAdmin as BasePeriodicTaskAdmin
from django_celery_beat.admin import PeriodicTaskForm, TaskSelectWidget
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

admin.site.unregister(PeriodicTask)
admin.site.unregister(IntervalSchedule)
admin.site.unregister(CrontabSchedule)
admin.site.unregister(SolarSchedule)
admin.site.unregister(ClockedSchedule)


class UnfoldTaskSelectWidget(UnfoldAdminSelectWidget, TaskSelectWidget):
    pass


class UnfoldPeriodicTaskForm(PeriodicTaskForm):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["task"].widget = UnfoldAdminTextInputWidget()
        self.fields["regtask"].widget = UnfoldTaskSelectWidget()


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(BasePeriodicTaskAdmin, ModelAdmin):
    form = UnfoldPeriodicTaskForm


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(ModelAdmin):
    pass


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(BaseCrontabScheduleAdmin, ModelAdmin):
    pass


@admin.register(SolarSchedule)
class SolarScheduleAdmin(ModelAdmin):
    pass


@admin.register(ClockedSchedule)
class ClockedScheduleAdmin(BaseClockedScheduleAdmin, ModelAdmin):
    pass
""",
    ),
)


def build() -> None:
    from recipes import kit

    kit.furnish()
    kit.every_second("before")


def look() -> Any:
    from django.apps import apps
    from recipes import kit

    client = kit.browser()
    for name in ("periodictask", "intervalschedule", "crontabschedule", "solarschedule", "clockedschedule"):
        kind = f"/admin/django_celery_beat/{name}/"
        for page in ("", "?q=before", "?o=1", "add/"):
            kit.page(client, kind + page)
        row = apps.get_model("django_celery_beat", name).objects.first()
        for page in ("change", "delete", "history") if row else ():
            kit.page(client, f"{kind}{row.pk}/{page}/")
    return kit.tasks()


def edit() -> None:
    from django_celery_beat.models import PeriodicTask
    from recipes import kit

    client, kind = kit.browser(), "/admin/django_celery_beat/periodictask/"
    task = PeriodicTask.objects.get(name="before")
    kit.submit(client, f"{kind}{task.pk}/change/", enabled="")
    kit.submit(client, f"{kind}add/", name="after", task=task.task, interval=str(task.interval_id))
    answer = client.post(kind, {"action": "run_tasks", "_selected_action": [task.pk]})
    assert answer.status_code == 302, answer.status_code
