"""Settings driven by the environment, so that a test can give a child process its own database and broker.

ONEBEAT_TEST_DB         a DATABASES entry as JSON, or a name from tests.services.DATABASES (default "sqlite")
ONEBEAT_TEST_BROKER     broker URL (default: Celery's in-memory transport)
ONEBEAT_TEST_QUEUE      Celery's default queue (default "celery")
ONEBEAT_TEST_USE_TZ     1 or 0 (default 1)
ONEBEAT_TEST_TIME_ZONE  TIME_ZONE (default "UTC")
ONEBEAT_TEST_CELERY_TIMEZONE  CELERY_TIMEZONE (default: as TIME_ZONE)
ONEBEAT_TEST_TZ_AWARE   DJANGO_CELERY_BEAT_TZ_AWARE, 1 or 0 (default 1)
ONEBEAT_TEST_SETTINGS   ONEBEAT as JSON (default {})
ONEBEAT_TEST_CELERY     more settings of Celery as JSON, each with its prefix CELERY_ (default {})
ONEBEAT_TEST_THEME      an app that stands before the admin and changes its looks (default: none)
ONEBEAT_TEST_APP        the line in INSTALLED_APPS that the tests of switching change (default "onebeat")
"""

from __future__ import annotations

import json
import os
from typing import Any

_given = os.environ.get("ONEBEAT_TEST_DB") or "sqlite"
if _given.startswith("{"):
    _database: dict[str, Any] = json.loads(_given)
else:
    from tests.databases import own_file
    from tests.services import database

    _database = database(_given).settings_dict(f"onebeat_{os.getpid()}")
    # A file even for in-process tests: SQLite in memory has other locks than the one people use.
    if _given == "sqlite":
        _database["NAME"] = own_file()
        _database["TEST"] = {"NAME": _database["NAME"]}

DATABASES = {"default": _database}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = os.environ.get("ONEBEAT_TEST_USE_TZ", "1") == "1"
TIME_ZONE = os.environ.get("ONEBEAT_TEST_TIME_ZONE", "UTC")
DJANGO_CELERY_BEAT_TZ_AWARE = os.environ.get("ONEBEAT_TEST_TZ_AWARE", "1") == "1"

SECRET_KEY = "only for tests"
ALLOWED_HOSTS = ["*"]
DEBUG = False
ROOT_URLCONF = "tests.project.urls"
STATIC_URL = "/static/"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    *filter(None, [os.environ.get("ONEBEAT_TEST_THEME")]),
    "django.contrib.admin",
    os.environ.get("ONEBEAT_TEST_APP", "onebeat"),
    "tests.project.shop",
]
MIDDLEWARE = [
    "tests.project.csp.StrictPolicy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

ONEBEAT = json.loads(os.environ.get("ONEBEAT_TEST_SETTINGS", "{}"))

CELERY_BROKER_URL = os.environ.get("ONEBEAT_TEST_BROKER", "memory://")
CELERY_TASK_DEFAULT_QUEUE = os.environ.get("ONEBEAT_TEST_QUEUE", "celery")
CELERY_TIMEZONE = os.environ.get("ONEBEAT_TEST_CELERY_TIMEZONE", TIME_ZONE)
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
globals().update(json.loads(os.environ.get("ONEBEAT_TEST_CELERY", "{}")))
