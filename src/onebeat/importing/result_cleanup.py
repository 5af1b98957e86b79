"""Celery's own clean-up of results, as the entry that Celery would add to CELERY_BEAT_SCHEDULE."""

from __future__ import annotations

import logging
from typing import Any

from celery import Celery, schedules
from celery.backends.base import DisabledBackend

logger = logging.getLogger("onebeat")

#: The name of the entry, and of the Celery task that it sends.
NAME = "celery.backend_cleanup"
#: A clean-up that no worker came to in these seconds takes place the next day.
_EXPIRES_SECONDS = 12 * 3600


def entry() -> dict[str, object]:
    """The entry: each day at four."""
    options = {"expire_seconds": _EXPIRES_SECONDS}
    return {"task": NAME, "schedule": schedules.crontab(minute="0", hour="4"), "options": options}


def needed(app: Celery) -> bool:
    """Whether results are kept that expire and that nothing else clears away."""
    if not app.conf.result_expires:
        return False
    try:
        backend: Any = app.backend
    except Exception as error:  # the result backend's library is missing, or its URL is wrong
        logger.error("whether results need a clean-up is not known: %r", error)
        return False
    return not (isinstance(backend, DisabledBackend) or backend.supports_autoexpire)
