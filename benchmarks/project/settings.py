"""Settings for any contestant: BENCH_APP is its line in INSTALLED_APPS, BENCH_DB a DATABASES entry as JSON."""

from __future__ import annotations

import json
import os

DATABASES = {"default": json.loads(os.environ["BENCH_DB"])}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
SECRET_KEY = "only for benchmarks"
INSTALLED_APPS = ["django.contrib.contenttypes", *filter(None, [os.environ.get("BENCH_APP")])]
ONEBEAT = json.loads(os.environ.get("BENCH_SETTINGS", "{}"))

CELERY_BROKER_URL = os.environ["BENCH_BROKER"]
CELERY_TASK_DEFAULT_QUEUE = os.environ["BENCH_QUEUE"]
CELERY_TIMEZONE = "UTC"
CELERY_TASK_IGNORE_RESULT = True
