"""What onebeat adds for people, beside the old tables and never inside them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import models

from onebeat.core.catchup import Policy
from onebeat.models import fields
from onebeat.models.instants import UTCDateTimeField


class TaskOptions(models.Model):
    """A task's policies and pause. At most one row for each task; no row means the defaults.

    The key has no constraint in the database: django-celery-beat, which does not know this table, must still be able to
    delete tasks after somebody goes back to it.
    """

    class Missed(models.TextChoices):
        LATEST = "latest", "one late run for the newest missed time"
        SKIP = "skip", "no run for missed times"
        ALL = "all", "a run for each missed time"

    task = models.OneToOneField(
        "django_celery_beat.PeriodicTask",
        on_delete=models.CASCADE,
        primary_key=True,
        db_constraint=False,
        related_name="onebeat_options",
    )
    missed = fields.CharField(
        max_length=10,
        choices=Missed.choices,
        default=Missed.LATEST,
        help_text="What happens to nominal times that no scheduler could send at their turn.",
    )
    grace_seconds = fields.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Lateness in seconds beyond which a time is missed. Empty: however late, it is worth one run.",
    )
    jitter_seconds = fields.PositiveIntegerField(
        default=0, help_text="Spread the moment of sending over this many seconds after the nominal time."
    )
    paused = fields.BooleanField(default=False, help_text="Send nothing until resumed, or until the instant below.")
    paused_until = UTCDateTimeField(null=True, blank=True)
    paused_why = fields.TextField(blank=True, default="")
    paused_by = fields.CharField(max_length=200, blank=True, default="")

    class Meta:
        app_label = "django_celery_beat"
        db_table = "onebeat_taskoptions"
        verbose_name = "task options"
        verbose_name_plural = "task options"

    def __str__(self) -> str:
        return f"options of task {self.task_id}"


def policy(
    missed: str, grace_seconds: int | None, jitter_seconds: int, paused: bool, paused_until: datetime | None
) -> Policy:
    """The columns of `TaskOptions` as the engine's policy."""
    until = (paused_until or datetime.max.replace(tzinfo=UTC)) if paused else None
    return Policy(
        missed=missed if missed in ("skip", "all") else "latest",  # type: ignore[arg-type]
        grace=None if grace_seconds is None else timedelta(seconds=grace_seconds),
        jitter=timedelta(seconds=jitter_seconds),
        paused_until=until,
    )
