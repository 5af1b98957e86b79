"""The Celery app: `celery -A tests.project.celery ...`."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.project.settings")

app = Celery("tests.project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["tests.project"])
