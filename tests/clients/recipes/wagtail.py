"""wagtail-celery-beat: tasks and schedules in Wagtail's admin."""

from __future__ import annotations

from typing import Any

PACKAGES = ("wagtail-celery-beat==1.0.4", "wagtail")
DID = "in Wagtail's admin: lists, forms of tasks and schedules; its action switches a task off, its form adds one"
NOT_SEEN = "the run was not finished"
APPS = """
    "wagtail_celery_beat",
    "wagtail.contrib.forms",
    "wagtail.contrib.redirects",
    "wagtail.sites",
    "wagtail.users",
    "wagtail.snippets",
    "wagtail.documents",
    "wagtail.images",
    "wagtail.search",
    "wagtail.admin",
    "wagtail",
    "modelcluster",
    "taggit",
"""
SETTINGS = 'WAGTAIL_SITE_NAME = "site"\nWAGTAILADMIN_BASE_URL = "http://localhost"'
URLS = 'path("cms/", include("wagtail.admin.urls")),'


def build() -> None:
    from recipes import kit

    kit.furnish()
    kit.every_second("before")


def look() -> Any:
    from django.apps import apps
    from django.urls import reverse
    from recipes import kit

    client = kit.browser()
    listed = kit.page(client, "/cms/celery-admin/")
    for name in ("periodictask", "intervalschedule", "crontabschedule", "solarschedule", "clockedschedule"):
        model = apps.get_model("django_celery_beat", name)
        base = f"wagtailsnippets_django_celery_beat_{name}"
        kit.page(client, reverse(f"{base}:list"))
        kit.page(client, reverse(f"{base}:add"))
        if row := model.objects.first():
            kit.page(client, reverse(f"{base}:edit", args=[row.pk]))
    return [kit.tasks(), [name in listed for name in ("before", "crontab", "clocked")]]


def edit() -> None:
    from django.urls import reverse
    from django_celery_beat.models import PeriodicTask
    from recipes import kit
    from wagtail_celery_beat.views import IndexListView

    client = kit.browser()
    task = PeriodicTask.objects.get(name="before")
    (off,) = (action.id() for action in IndexListView().get_actions() if action.label == "Disable")
    answer = client.post("/cms/celery-admin/", {"periodic_task_action": off, "selected_for_task": [task.pk]})
    assert answer.status_code == 302, answer.status_code
    add = reverse("wagtailsnippets_django_celery_beat_periodictask:add")
    kit.submit(client, add, name="after", task=task.task, interval=str(task.interval_id), enabled="on")
