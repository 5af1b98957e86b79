"""django-beat-periodic: tasks declared by a decorator, and stored whenever Django starts, also within `migrate`."""

from __future__ import annotations

from typing import Any

PACKAGES = ("django-beat-periodic==0.6.0",)
DID = "tasks are declared by its decorator; its commands list them, and bring changed declarations into the table"
SETTINGS = 'INSTALLED_APPS += ["django_beat_periodic"]'
QUICK = True
FILES = (
    (
        "shop/tasks.py",
        """
from django_beat_periodic.decorators import periodic_task


@periodic_task(interval=1, name="before")
def often() -> None: ...


@periodic_task(interval=1, name="after", enabled=False)
def too() -> None: ...


@periodic_task(crontab="30 9 * * mon-fri", name="mornings")
def mornings() -> None: ...
""",
    ),
    # Before the add-on: the decorators are run when the app is loaded, and stored when the add-on is ready.
    (
        "shop/apps.py",
        """
from django.apps import AppConfig


class ShopConfig(AppConfig):
    name = "shop"

    def ready(self):
        import shop.tasks
""",
    ),
)


def build() -> None:
    pass


def look() -> Any:
    import io

    from django.core.management import call_command
    from django_celery_beat.models import PeriodicTask

    listed = io.StringIO()
    call_command("list_periodic_tasks", stdout=listed)
    names = ["before", "after", "mornings"]
    return [
        [name in listed.getvalue() for name in names],
        sorted(map(list, PeriodicTask.objects.filter(name__in=names).values_list("name", "task", "enabled"))),
    ]


def edit() -> None:
    import subprocess
    import sys
    from pathlib import Path

    declared = Path("shop/tasks.py")
    text = declared.read_text().replace(", enabled=False", "")
    declared.write_text(text.replace('name="before"', 'name="before", enabled=False'))
    subprocess.run([sys.executable, "manage.py", "sync_periodic_tasks"], check=True)
