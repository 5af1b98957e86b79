"""What the project's code declares of its tasks, as of the last sync."""

from __future__ import annotations

from django.db import models

from onebeat.models.fields import ExactField
from onebeat.models.instants import UTCDateTimeField

#: The fact that the tables were given back to django-celery-beat since the settings were last synced.
HANDED_BACK = "settings_handed_back"


class Declared(models.Model):
    """One task that code declares, or has declared, with its values as of the last sync."""

    #: The name of the task.
    name = ExactField(max_length=200, primary_key=True)
    #: The key of the task's row. No constraint: a row that a person has deleted stays deleted, and this says so.
    task = models.BigIntegerField(db_index=True)
    #: "schedules": a `schedules.py`; "settings": CELERY_BEAT_SCHEDULE.
    source = models.CharField(max_length=20)
    #: Where, for people: a file and line, or the name of the setting.
    place = models.CharField(max_length=500, default="", blank=True)
    #: A JSON object of the fields that code named, in their plain form; empty once the tables were handed back, since
    #: django-celery-beat may have written the row from the settings in the meantime.
    values = models.TextField(default="{}", blank=True)
    #: Since when code no longer declares it; None while it does.
    removed_at = UTCDateTimeField(null=True)
    #: Whether the sync that saw it removed has disabled it: then it is enabled again when it comes back.
    disabled_by_sync = models.BooleanField(default=False, db_default=False)

    class Meta:
        app_label = "django_celery_beat"
        db_table = "onebeat_declared"

    def __str__(self) -> str:
        return f"{self.name}, declared in {self.place}"


class CodeVersion(models.Model):
    """Which version of the code has its turn to say what one source declares."""

    #: "schedules" or "settings".
    source = models.CharField(max_length=20, primary_key=True)
    #: A JSON list of the digests of what was declared, in the order of their turns; the last one has it now.
    known = models.TextField(default="[]")
    #: When the present turn began.
    since = UTCDateTimeField()
    #: When a process of that version was last seen.
    seen_at = UTCDateTimeField()

    class Meta:
        app_label = "django_celery_beat"
        db_table = "onebeat_codeversion"

    def __str__(self) -> str:
        return f"{self.source} since {self.since}"
