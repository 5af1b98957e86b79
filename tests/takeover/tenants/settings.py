"""A project with a schema for each tenant. Its apps are those that tenant-schemas-celery's own tests import."""

import os

import onebeat.takeover  # noqa: F401 - the way in beside django-tenants
from tests.services import database

_database = database("postgresql").settings_dict(f"onebeat_tenants_{os.getpid()}")
DATABASES = {"default": {**_database, "ENGINE": "django_tenants.postgresql_backend"}}
DATABASE_ROUTERS = ["django_tenants.routers.TenantSyncRouter"]
SHARED_APPS = ["django_tenants", "test_app.shared", "django.contrib.contenttypes", "django_celery_beat"]
TENANT_APPS = ["test_app.tenant", "django.contrib.contenttypes", "django_celery_beat"]
INSTALLED_APPS = [*SHARED_APPS, "test_app.tenant"]
TENANT_MODEL = "shared.Client"
TENANT_DOMAIN_MODEL = "shared.Domain"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
SECRET_KEY = "only for tests"
USE_TZ = True
