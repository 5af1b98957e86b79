"""django-tenants: the tables of periodic tasks in a schema for each tenant, and in the public one."""

from __future__ import annotations

from typing import Any

PACKAGES = ("django-tenants==4.0.1",)
DID = "migrated in each schema; the admin of each tenant; a tenant added later; a scheduler of the public schema"
DATABASE = "postgresql"
SECTION = "django-tenants"
PREPARE = "python manage.py makemigrations shared tenant"
MIGRATE = "python manage.py migrate_schemas --verbosity=0"
SETTINGS = """
DATABASES["default"]["ENGINE"] = "django_tenants.postgresql_backend"
DATABASE_ROUTERS = ["django_tenants.routers.TenantSyncRouter"]
MIDDLEWARE.insert(0, "django_tenants.middleware.main.TenantMainMiddleware")
TENANT_APPS = [*INSTALLED_APPS, "test_app.tenant"]
SHARED_APPS = ["django_tenants", "test_app.shared", *INSTALLED_APPS]
INSTALLED_APPS = [*SHARED_APPS, "test_app.tenant"]
TENANT_MODEL = "shared.Client"
TENANT_DOMAIN_MODEL = "shared.Domain"
"""
FILES = (
    (
        "test_app/shared/models.py",
        """
from django.db import models
from django_tenants.models import DomainMixin, TenantMixin


class Client(TenantMixin):
    name = models.CharField(max_length=100)
    ready = models.BooleanField(default=True)


class Domain(DomainMixin):
    pass
""",
    ),
    (
        "test_app/tenant/models.py",
        """
from django.db import models


class DummyModel(models.Model):
    name = models.CharField(max_length=100)
""",
    ),
    *((f"test_app/{name}__init__.py", "") for name in ("", "shared/", "tenant/")),
    *((f"test_app/{name}/migrations/__init__.py", "") for name in ("shared", "tenant")),
)


def tenant(name: str, host: str) -> Any:
    """A tenant with its schema and its address."""
    from test_app.shared.models import Client, Domain

    made = Client.objects.create(schema_name=name, name=name)
    Domain.objects.create(domain=host, tenant=made, is_primary=True)
    return made


def build() -> None:
    from django_tenants.utils import tenant_context
    from recipes import kit

    for name, host in (("public", "localhost"), ("one", "one.localhost")):
        with tenant_context(tenant(name, host)):
            kit.furnish()
            kit.every_second("before")


def look() -> Any:
    from django.db import connection
    from django_tenants.utils import schema_context
    from recipes import kit
    from test_app.shared.models import Client

    shown = []
    for name in Client.objects.order_by("schema_name").values_list("schema_name", flat=True):
        with schema_context(name):
            tables = connection.introspection.table_names()
            assert "django_celery_beat_periodictask" in tables, tables
            client = kit.browser("localhost" if name == "public" else f"{name}.localhost")
            shown.append([name, kit.tasks()])
        kit.page(client, "/admin/django_celery_beat/periodictask/")
        connection.set_schema_to_public()
    return shown


def edit() -> None:
    from django_celery_beat.models import PeriodicTask
    from django_tenants.utils import tenant_context
    from recipes import kit

    from onebeat.models import TaskState

    with tenant_context(tenant("two", "two.localhost")):
        kit.every_second("in two")
        assert not TaskState.objects.exclude(due_at=None).exists(), "nobody looks there"
    PeriodicTask.objects.filter(name="before").update(enabled=False)
    kit.every_second("after")
