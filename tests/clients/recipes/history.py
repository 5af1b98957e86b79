"""django-simple-history: the history of tasks, whose records are a model made of PeriodicTask's fields."""

from __future__ import annotations

from typing import Any

PACKAGES = ("django-simple-history==3.13.0",)
DID = "`PeriodicTask` is registered with it, its table made; edits by code and admin leave records, one is taken back"
APPS = '"simple_history",'
FILES = (
    (
        "shop/admin.py",
        """
from django.contrib import admin
from django_celery_beat.admin import PeriodicTaskAdmin
from django_celery_beat.models import PeriodicTask
from simple_history.admin import SimpleHistoryAdmin


class Mine(SimpleHistoryAdmin, PeriodicTaskAdmin):
    pass


admin.site.unregister(PeriodicTask)
admin.site.register(PeriodicTask, Mine)
""",
    ),
    (
        "shop/models.py",
        """
from django_celery_beat.models import PeriodicTask
from simple_history import register

register(PeriodicTask, app="shop")
""",
    ),
    ("shop/migrations/__init__.py", ""),
)
PREPARE = "python manage.py makemigrations shop"


def build() -> None:
    from recipes import kit

    kit.furnish()
    task = kit.every_second("before")
    task.description = "edited"
    task.save()


def altered_columns() -> list[str]:
    """What of the table of records is not as the model asks for. Texts for people may differ."""
    from django.apps import apps
    from django.db import connection
    from django.db.migrations.autodetector import MigrationAutodetector
    from django.db.migrations.loader import MigrationLoader
    from django.db.migrations.state import ProjectState

    loader, after = MigrationLoader(connection), ProjectState.from_apps(apps)
    before = loader.project_state()
    changes = MigrationAutodetector(before, after).changes(graph=loader.graph).get("shop", [])
    found = []
    for operation in (each for migration in changes for each in migration.operations):
        fields = [
            state.apps.get_model("shop", operation.model_name)._meta.get_field(operation.name)
            for state in (before, after)
        ]
        if connection.schema_editor()._field_should_be_altered(*fields):
            found.append(operation.describe())
    return found


def look() -> Any:
    from django_celery_beat.models import PeriodicTask
    from recipes import kit

    assert altered_columns() == []
    client = kit.browser()
    task = PeriodicTask.objects.get(name="before")
    kit.page(client, "/admin/django_celery_beat/periodictask/")
    text = kit.page(client, f"/admin/django_celery_beat/periodictask/{task.pk}/history/")
    records = task.history.order_by("history_id")
    kit.page(client, f"/admin/django_celery_beat/periodictask/{task.pk}/history/{records[0].pk}/")
    # What is recorded of a task's runs depends on how its scheduler writes them.
    said = [[each.history_type, each.description, each.enabled] for each in records]
    return [
        kit.tasks(),
        [one for n, one in enumerate(said) if one not in said[:n]],
        "edited" in text or "before" in text,
    ]


def edit() -> None:
    from django_celery_beat.models import PeriodicTask
    from recipes import kit

    task = PeriodicTask.objects.get(name="before")
    task.enabled = False
    task.save()
    kit.every_second("after", description="first")
    task = PeriodicTask.objects.get(name="after")
    task.description = "second"
    task.save()
    task.history.earliest().instance.save()
    task.refresh_from_db()
    assert [task.description, task.history.count() >= 3] == ["first", True]
