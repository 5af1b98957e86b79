"""dj-celery-panel: its pages in the admin that list periodic tasks from the database."""

from __future__ import annotations

from typing import Any

PACKAGES = ("dj-celery-panel==0.6.0", "pytest", "pytest-django")
DID = "its list of periodic tasks, from the database; its own tests of periodic tasks"
APPS = '"dj_control_room_base", "dj_celery_panel",'
URLS = """
    path("admin/dj-control-room-base/", include("dj_control_room_base.urls")),
    path("admin/dj-celery-panel/", include("dj_celery_panel.urls")),
"""
SETTINGS = """
DJ_CELERY_PANEL_SETTINGS = {
    "periodic_tasks_backend": "dj_celery_panel.celery_utils.periodic_tasks.CeleryPeriodicTasksDjangoCeleryBeatBackend"
}
"""
NOT_SEEN = "the run was not finished"
OWN_TESTS = "python -m pytest -p no:cacheprovider -o addopts= --ds=proj.settings -rfE -q tests/test_periodic_tasks.py"


def build() -> None:
    from recipes import kit

    kit.furnish()
    kit.every_second("before")


def look() -> Any:
    from dj_celery_panel.celery_utils.periodic_tasks import CeleryPeriodicTasksDjangoCeleryBeatBackend
    from proj.celery import app
    from recipes import kit

    client = kit.browser()
    kit.page(client, "/admin/")
    found = CeleryPeriodicTasksDjangoCeleryBeatBackend(app).get_periodic_tasks()
    assert not found.error, found.error
    rows = [task for task in found.periodic_tasks if not task["name"].startswith("celery.")]
    return [kit.tasks(), sorted([row["name"], row["schedule"], row["args"], row["enabled"]] for row in rows)]


def edit() -> None:
    from django_celery_beat.models import PeriodicTask
    from recipes import kit

    PeriodicTask.objects.filter(name="before").update(enabled=False)
    kit.every_second("after")
