"""CELERY_BEAT_SCHEDULE of the project, as the tests of `DatabaseScheduler` have it."""

from __future__ import annotations

from tests.compat.conftest import declared

__all__ = ["declared"]
