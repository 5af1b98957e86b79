"""`django_celery_beat.utils`."""

from __future__ import annotations

from datetime import UTC, datetime

from django.conf import settings
from django.utils import timezone
from django.utils.timezone import is_aware
from kombu.utils.imports import symbol_by_name

from onebeat.core import clock
from onebeat.dispatch.celery.schedules import NEVER_CHECK_TIMEOUT
from onebeat.models.instants import from_utc, project_zone

__all__ = [
    "NEVER_CHECK_TIMEOUT",
    "aware_now",
    "is_aware",
    "is_database_scheduler",
    "make_aware",
    "now",
    "now_localtime",
]


def now_localtime(value: datetime) -> datetime:
    """An aware time in the current zone; a naive one as it is, and every one with USE_TZ off."""
    return timezone.localtime(value) if settings.USE_TZ and is_aware(value) else value


def make_aware(value: datetime) -> datetime:
    """An aware time, with USE_TZ in TIME_ZONE: a naive one is UTC with USE_TZ, and wall clock of TIME_ZONE without."""
    if timezone.is_naive(value):
        value = timezone.make_aware(value, UTC if settings.USE_TZ else timezone.get_default_timezone())
    return timezone.localtime(value, timezone.get_default_timezone()) if settings.USE_TZ else value


def now() -> datetime:
    """The present instant as people's columns hold one; aware unless DJANGO_CELERY_BEAT_TZ_AWARE is off."""
    if getattr(settings, "DJANGO_CELERY_BEAT_TZ_AWARE", True):
        return now_localtime(from_utc(clock.host_now()))
    return from_utc(clock.host_now())


def aware_now() -> datetime:
    """The present instant, aware: in UTC with USE_TZ, in TIME_ZONE without."""
    return clock.host_now().astimezone(UTC if settings.USE_TZ else project_zone())


def is_database_scheduler(scheduler: str | type | None) -> bool:
    """Whether this value of `CELERY_BEAT_SCHEDULER`, a name or a class, is a scheduler on this database."""
    if not scheduler:
        return False
    from onebeat.celery.beat import Scheduler

    if scheduler in ("onebeat", "django"):
        return True
    found = symbol_by_name(scheduler) if isinstance(scheduler, str) else scheduler
    return isinstance(found, type) and issubclass(found, Scheduler)
