"""The canonical form of each value of a schedule row that was taken over: what the fields would have stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC
from functools import lru_cache

from django.conf import settings
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from onebeat.core.recurrence import canonical_field, zone
from onebeat.core.recurrence.celery_dialect import Reading, read_taken_over
from onebeat.core.recurrence.fields import KINDS
from onebeat.errors import InvalidSchedule

Values = tuple[str, ...]

#: The width of the narrowest column of a crontab.
_ALWAYS_FITS = 64


def interval(values: Values) -> Values:
    """(unit,) in small letters, without space around it."""
    return (values[0].strip().lower(),)


@lru_cache(maxsize=8192)
def crontab(values: Values) -> Values:
    """The five fields and the zone, canonical. Fields that Celery could not read, or that mean something else to the
    grammar of new rows, stay as they are: nobody's task may change its meaning by being tidied.
    """
    if no_zone(values):
        return values
    if reading(values).verdict != "kept":
        return (*values[:5], zone(values[5]).key)
    fields = [canonical_field(name, text) for name, text in zip(KINDS, values[:5], strict=True)]
    fits = all(len(new) <= max(len(old), _ALWAYS_FITS) for new, old in zip(fields, values[:5], strict=True))
    return (*fields, zone(values[5]).key) if fits else values


@lru_cache(maxsize=8192)
def reading(values: Values) -> Reading:
    """A crontab row as Celery read its five fields. The zone is a matter of its own: this host may learn it yet."""
    return read_taken_over(*values[:5])


def no_zone(values: Values) -> str:
    """What is wrong with the zone of a crontab row, in one line; empty if this host knows it."""
    try:
        zone(values[5])
    except InvalidSchedule as error:
        return str(error)
    return ""


def clocked(values: Values) -> Values:
    """SQLite's text of an instant, as Django writes it. Other databases have a type for it."""
    try:
        moment = parse_datetime(values[0])
    except ValueError:
        return values
    if moment is None or (timezone.is_aware(moment) and not settings.USE_TZ):
        return values
    if timezone.is_aware(moment):
        moment = timezone.make_naive(moment, UTC)
    return (str(moment),)


#: For each kind: the columns that vary, and what makes the canonical form.
SPELLED: dict[str, tuple[Sequence[str], Callable[[Values], Values]]] = {
    "interval": (("period",), interval),
    "crontab": ((*KINDS, "timezone"), crontab),
    "clocked": (("clocked_time",), clocked),
}
