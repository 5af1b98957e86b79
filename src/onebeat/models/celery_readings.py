"""Crontab rows of a database that was taken over, as far as Celery read them otherwise than they are read now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from django.db import models

from onebeat.core.recurrence import Cron
from onebeat.core.recurrence.celery_dialect import read_taken_over
from onebeat.db import schema
from onebeat.errors import InvalidSchedule


class CeleryReading(models.Model):
    """What Celery made of a crontab row that was there at the take-over. The row keeps that meaning until it is edited.

    Written by the migration alone. Rows that are made later are read by the grammar, whatever they say.
    """

    #: The primary key of the crontab row.
    crontab = models.BigIntegerField(primary_key=True)
    #: The row's value as it was then. A row that says something else by now has been edited: this is over.
    text = models.CharField(max_length=700)
    #: The five fields as Celery read them, in the grammar of new rows; empty: it could not read them.
    meaning = models.TextField(default="", blank=True)
    #: The difference, in one line.
    why = models.TextField()

    class Meta:
        app_label = "django_celery_beat"
        db_table = "onebeat_celeryreading"
        verbose_name = "crontab that was taken over"
        verbose_name_plural = "crontabs that were taken over"

    def __str__(self) -> str:
        return f"crontab {self.crontab}: {self.why}"

    def cron(self) -> Cron:
        """The rule that Celery saw. Raises `InvalidSchedule` if it saw none, or if this host has no such zone."""
        fields = self.meaning.split()
        if not fields:
            what = "Celery could not read this row, so it ran for nobody; save the row again, corrected if need be"
            raise InvalidSchedule("crontab", self.text, f"{what} ({self.why})")
        minute, hour, day_of_month, month_of_year, day_of_week = fields
        return Cron(minute, hour, day_of_month, month_of_year, day_of_week, self.text.rpartition(" ")[2])


def readings(using: str, rows: Mapping[int, Sequence[object]]) -> dict[int, CeleryReading]:
    """Of these crontab rows (key to value, as the columns hold it), those that have a reading of their own."""
    texts = {key: " ".join(map(str, value)) for key, value in rows.items() if _odd(*map(str, value))}
    if not texts or not schema.there(using, CeleryReading._meta.db_table):
        return {}
    found = CeleryReading._base_manager.using(using).filter(pk__in=list(texts))
    return {one.pk: one for one in found if one.text == texts[one.pk]}


def look_up(using: str, crontabs: Iterable[Any]) -> None:
    """Give these crontab objects their readings in one statement, so that a list of them costs one and not one each."""
    rows = list(crontabs)
    found = readings(using, {row.pk: row.value() for row in rows})
    for row in rows:
        row.__dict__["_onebeat_reading"] = found.get(row.pk)


@lru_cache(maxsize=8192)
def _odd(minute: str, hour: str, day_of_month: str, month_of_year: str, day_of_week: str, zone: str) -> bool:
    return read_taken_over(minute, hour, day_of_month, month_of_year, day_of_week).verdict != "kept"
