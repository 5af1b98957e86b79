"""tenant-schemas-celery: one scheduler for the tasks in every tenant's schema, on django-tenants."""

from __future__ import annotations

from typing import Any

from . import tenants

PACKAGES = ("tenant-schemas-celery==5.0.0", "django-tenants==4.0.1", "pytest", "pytest-django", "celery[redis]")
DID = "its scheduler, in classic mode, sees the tasks of each tenant and what is changed in them; its own tests"
NOT_SEEN = "the run was not finished; its own tests pass in tests/takeover"
SECTION, DATABASE, PREPARE, MIGRATE = "django-tenants", tenants.DATABASE, tenants.PREPARE, tenants.MIGRATE
BEAT = "celery -A proj beat -S tenant_schemas_celery.db_scheduler:TenantAwareDatabaseScheduler"
SETTINGS = f"{tenants.SETTINGS}\nMIDDLEWARE.pop(0)"
ENV = (("BROKER_URL", "memory://"),)
OWN_TESTS = (
    "python -m pytest -p no:cacheprovider --ds=proj.settings -rfE -q tenant_schemas_celery/db_scheduler_test.py"
    " tenant_schemas_celery/test_scheduler.py"
)
FILES = (
    *tenants.FILES,
    (
        "proj/celery.py",
        """
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "proj.settings")
from tenant_schemas_celery.app import CeleryApp

app = CeleryApp("proj")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["shop"])
""",
    ),
)


def build() -> None:
    from django_tenants.utils import tenant_context
    from recipes import kit

    tenants.tenant("public", "localhost")
    # It wants each name once in all schemas.
    with tenant_context(tenants.tenant("one", "one.localhost")):
        kit.furnish()
        kit.every_second("before")


def look() -> Any:
    from django_tenants.utils import schema_context
    from recipes import kit

    with schema_context("one"):
        return kit.tasks()


def edit() -> None:
    from django_celery_beat.models import PeriodicTask
    from django_tenants.utils import schema_context
    from recipes import kit

    with schema_context("one"):
        PeriodicTask.objects.filter(name="before").update(enabled=False)
        kit.every_second("after")
