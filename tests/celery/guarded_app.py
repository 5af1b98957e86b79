"""The test project's app, guarded as a whole: CELERY_IMPORTS names this module."""

from __future__ import annotations

from onebeat.celery import guard
from tests.project.celery import app

guard(app)
