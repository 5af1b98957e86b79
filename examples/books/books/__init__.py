"""The app, and the project's Celery app, which Django loads with it."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
app = Celery("books")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["books"])
