"""The least that such a project needs. Yours has a database server and a broker."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

INSTALLED_APPS = ["onebeat", "books"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("BOOKS_DB", str(Path(tempfile.gettempdir()) / "onebeat-books.sqlite3")),
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
    }
}
USE_TZ = True
TIME_ZONE = "Europe/Paris"
SECRET_KEY = "only for the example"
CELERY_BROKER_URL = "memory://"
CELERY_TIMEZONE = TIME_ZONE
