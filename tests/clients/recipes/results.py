"""django-celery-results: what beat sent is run by a worker, and its result names the task."""

from __future__ import annotations

from typing import Any

PACKAGES = ("django-celery-results==2.6.0",)
DID = "a message of beat is run by a worker; its row in the results names the periodic task; admin of the results"
APPS = '"django_celery_results",'
SETTINGS = """
CELERY_RESULT_BACKEND = "django-db"
CELERY_RESULT_EXTENDED = True
"""
QUICK = True


def build() -> None:
    from recipes import kit

    kit.furnish()
    kit.every_second("before")
    run_one("before")


def run_one(name: str) -> None:
    """Send a task as beat sends it, and work at it here."""
    from celery.contrib.testing.worker import start_worker
    from django_celery_beat.models import PeriodicTask
    from django_celery_beat.schedulers import ModelEntry
    from proj.celery import app

    entry = ModelEntry(PeriodicTask.objects.get(name=name), app=app)
    with start_worker(app, perform_ping_check=False, shutdown_timeout=60):
        app.tasks[entry.task].apply_async(entry.args, entry.kwargs, **entry.options).get(timeout=60)


def look() -> Any:
    from django_celery_results.models import TaskResult
    from recipes import kit

    client = kit.browser()
    kit.page(client, "/admin/django_celery_results/taskresult/?q=before")
    rows = TaskResult.objects.values_list("periodic_task_name", "task_name", "status").distinct()
    return [kit.tasks(), sorted(map(list, rows))]


def edit() -> None:
    from django_celery_beat.models import PeriodicTask
    from recipes import kit

    PeriodicTask.objects.filter(name="before").update(enabled=False)
    kit.every_second("after")
    run_one("after")
