"""Settings of the demo. Everything it writes is under one folder, which DEMO_FOLDER names."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(os.environ.get("DEMO_FOLDER") or Path(__file__).resolve().parents[3] / ".demo")
RUNS = FOLDER / "runs.jsonl"

SECRET_KEY = "for a demo on this machine only"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = "shop.urls"
STATIC_URL = "/static/"
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": FOLDER / "demo.sqlite3",
        # What `manage.py check` recommends for SQLite, and a journal that lets people read while somebody writes.
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 30,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
        },
    }
}
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.admin",
    "onebeat",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
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

# A short lease, so that the work of a killed scheduler is seen to be taken over.
ONEBEAT = {"lease_seconds": 3}

CELERY_BROKER_URL = "files://"
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "data_folder_in": str(FOLDER / "queue"),
    "data_folder_out": str(FOLDER / "queue"),
    "control_folder": str(FOLDER / "control"),
    "processed_folder": str(FOLDER / "processed"),
    "store_processed": True,
    "polling_interval": 0.05,
}
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
