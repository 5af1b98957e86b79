"""The instants of the story, and the one clock of a process."""

from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

from django.conf import settings
from django.utils.timezone import get_default_timezone

UTC = timezone.utc
#: A Wednesday, 14:00 in Berlin: django-celery-beat has just been stopped.
NOW = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)


def at(minutes):
    return NOW + timedelta(minutes=minutes)


def column(instant):
    """An instant as people's columns take it."""
    return instant if settings.USE_TZ else instant.astimezone(get_default_timezone()).replace(tzinfo=None)


def last_run(instant):
    """An instant as django-celery-beat writes it into last_run_at: naive, it is UTC."""
    return instant if settings.USE_TZ else instant.replace(tzinfo=None)


@contextmanager
def pinned(instant):
    """Yields what moves the clock."""
    if settings.INSTALLED_APPS.count("onebeat"):
        from onebeat.core import clock

        with clock.pin(instant):
            yield clock.move
        return
    import time_machine

    # By the timestamp: with a zone it would change that of the process too.
    with time_machine.travel(instant.timestamp(), tick=False) as traveller:
        yield lambda moment: traveller.move_to(moment.timestamp())
