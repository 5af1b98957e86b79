"""Settings driven by the environment.

LEGACY_DB       the DATABASES entry as JSON
LEGACY_BEAT     the line of INSTALLED_APPS that the switch changes
LEGACY_USE_TZ   1 or 0
LEGACY_BROKER   broker URL
LEGACY_QUEUE    Celery's default queue
"""

import json
import os

import django

_database = json.loads(os.environ["LEGACY_DB"])
if _database["ENGINE"].endswith("sqlite3") and django.VERSION < (5, 1):
    _database["OPTIONS"] = {"timeout": _database["OPTIONS"]["timeout"]}
DATABASES = {"default": _database}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = os.environ["LEGACY_USE_TZ"] == "1"
#: Ahead of UTC, so that a wall clock that is taken for UTC shows.
TIME_ZONE = "Europe/Berlin"
#: As its documentation demands.
DJANGO_CELERY_BEAT_TZ_AWARE = USE_TZ

SECRET_KEY = "only for tests"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "legacy.urls"
STATIC_URL = "/static/"
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.admin",
    os.environ["LEGACY_BEAT"],
    "legacy.clients",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
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

CELERY_BROKER_URL = os.environ["LEGACY_BROKER"]
CELERY_TASK_DEFAULT_QUEUE = os.environ["LEGACY_QUEUE"]
CELERY_TIMEZONE = TIME_ZONE
CELERY_TASK_IGNORE_RESULT = True
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
