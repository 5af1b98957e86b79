"""What onebeat adds for people, beside the old tables and never inside them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db import models, router, transaction
from django.utils.translation import gettext_lazy as _

from onebeat.core.catchup import Policy
from onebeat.db import database_clock, schema
from onebeat.models import change_hints, fields
from onebeat.models.deletion import if_there
from onebeat.models.edits import SAVE_ARGUMENTS
from onebeat.models.instants import UTCDateTimeField
from onebeat.models.task_rules import check_json


class TaskOptionsQuerySet(models.QuerySet["TaskOptions"]):
    """A change of a task's options is a change of the task: the engine gets a hint."""

    def update(self, **kwargs: object) -> int:
        """Update the rows and leave the hints. Returns how many were matched.

        Raises `ValidationError` for message options that are no JSON object.
        """
        self._for_write = True
        if "extra" in kwargs:
            check_extra(kwargs["extra"])
        with transaction.atomic(using=self.db):
            change_hints.changed_where(self.db, "task", self)
            return super().update(**kwargs)

    update.alters_data = True  # type: ignore[attr-defined]

    def delete(self) -> tuple[int, dict[str, int]]:
        """Delete the rows, which brings the defaults back, and leave the hints. Returns Django's counts."""
        self._for_write = True
        with transaction.atomic(using=self.db):
            change_hints.changed_where(self.db, "task", self)
            return super().delete()

    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]

    def bulk_create(self, objs: Iterable[TaskOptions], *args: Any, **kwargs: Any) -> list[TaskOptions]:
        """Insert the rows and leave the hints. Returns them. Raises as `save`."""
        self._for_write = True
        schema.require(self.db)
        objs = list(objs)
        for one in objs:
            check_extra(one.extra)
        with transaction.atomic(using=self.db):
            made = super().bulk_create(objs, *args, **kwargs)
            change_hints.changed(self.db, "task", [one.pk for one in made])
        return made


@fields.quiet
class TaskOptions(models.Model):
    """A task's policies and pause. At most one row for each task; no row means the defaults.

    The key has no constraint in the database: django-celery-beat, which does not know this table, must still be able to
    delete tasks after somebody goes back to it.
    """

    class Missed(models.TextChoices):
        LATEST = "latest", _("One late run for the newest of them (the others count as done by it)")
        SKIP = "skip", _("No run: wait for the next turn")
        ALL = "all", _("A run for each of them, in order")

    class Overlap(models.TextChoices):
        ALLOW = "allow", _("Send it all the same")
        SKIP = "skip", _("Skip it")

    task = models.OneToOneField(
        "django_celery_beat.PeriodicTask",
        on_delete=if_there,
        primary_key=True,
        db_constraint=False,
        related_name="onebeat_options",
    )
    missed = models.CharField(
        _("Missed runs"),
        max_length=10,
        choices=Missed.choices,
        default=Missed.LATEST,
        help_text=_("What happens to runs that no scheduler could send at their turn, because all were down."),
    )
    grace_seconds = models.PositiveIntegerField(
        _("Grace (seconds)"),
        null=True,
        blank=True,
        help_text=_("A run later than this is missed. Empty: however late, it is worth one run."),
    )
    jitter_seconds = models.PositiveIntegerField(
        _("Spread over (seconds)"),
        default=0,
        help_text=_("Each run leaves at a moment of its own within this time after its turn."),
    )
    overlap = models.CharField(
        _("Overlap"),
        max_length=10,
        choices=Overlap.choices,
        default=Overlap.ALLOW,
        db_default="allow",
        help_text=_("What happens when the run before has not ended. Workers must report their runs for this."),
    )
    overlap_limit_seconds = models.PositiveIntegerField(
        _("Limit of an open run (seconds)"),
        default=3600,
        db_default=3600,
        help_text=_("A run open for longer counts as lost, so that a dead worker blocks nobody for ever."),
    )
    paused = models.BooleanField(
        _("Paused"),
        default=False,
        help_text=_("Runs are skipped, with this reason, until the task is resumed or the time below has come."),
    )
    paused_until = UTCDateTimeField(_("Paused until"), null=True, blank=True)
    paused_why = models.TextField(_("Reason of the pause"), blank=True, default="")
    paused_by = models.CharField(_("Paused by"), max_length=200, blank=True, default="")
    #: When the present pause began, by the database's clock: what `resume` may catch up.
    paused_at = UTCDateTimeField(null=True, blank=True, editable=False)
    #: Who made the task: "once", "code", "admin", or empty for anybody.
    origin = models.CharField(max_length=10, blank=True, default="", db_default="", editable=False)
    tags = models.CharField(
        _("Tags"),
        max_length=500,
        blank=True,
        default="",
        db_default="",
        help_text=_("Words by which tasks are paused together, separated by commas."),
    )
    extra = fields.JSONTextField(
        _("More message options"),
        blank=True,
        default="{}",
        db_default="{}",
        help_text=_('A JSON object, for example {"time_limit": 60}.'),
    )
    #: The row this task belongs to, as "app.model:key": deleting it deletes the task.
    link = models.CharField(max_length=255, blank=True, default="", db_default="", editable=False)

    objects: ClassVar[models.Manager[TaskOptions]] = TaskOptionsQuerySet.as_manager()

    class Meta:
        app_label = "django_celery_beat"
        db_table = "onebeat_taskoptions"
        verbose_name = "task options"
        verbose_name_plural = "task options"
        indexes = [models.Index(fields=["link"], name="onebeat_taskoptions_link")]

    def __str__(self) -> str:
        return f"options of task {self.task_id}"

    def clean_fields(self, exclude: Any = None) -> None:
        """Check each field by itself; message options must be a JSON object. Raises `ValidationError`."""
        super().clean_fields(exclude)
        if "extra" not in (exclude or ()):
            check_extra(self.extra)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save, and leave a hint for the engine in the same transaction.

        Raises `ImproperlyConfigured` on a database whose tables are of an older onebeat, and `ValidationError` for
        message options that are no JSON object.
        """
        check_extra(self.extra)
        kwargs |= dict(zip(SAVE_ARGUMENTS, args, strict=False))
        using = kwargs.get("using") or router.db_for_write(type(self), instance=self)
        schema.require(using)
        self.tags = ",".join(sorted(split_tags(self.tags)))
        if self.paused != (self.paused_at is not None):
            self.paused_at = database_clock.now(using) if self.paused else None
        if kwargs.get("update_fields") is not None and "paused" in kwargs["update_fields"]:
            kwargs["update_fields"] = {*kwargs["update_fields"], "paused_at"}
        with transaction.atomic(using=using):
            super().save(**kwargs)
            change_hints.changed(using, "task", [self.task_id])

    def delete(self, using: str | None = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:
        """Delete, which brings the defaults back, and leave a hint in the same transaction."""
        using = using or router.db_for_write(type(self), instance=self)
        with transaction.atomic(using=using):
            change_hints.changed(using, "task", [self.task_id])
            return super().delete(using=using, keep_parents=keep_parents)


def check_extra(value: object) -> None:
    """Raise `ValidationError` on the field `extra` unless it holds a JSON object, as text or as it is."""
    if hasattr(value, "resolve_expression"):
        return
    try:
        check_json("extra", TaskOptions._meta.get_field("extra").to_python(value))
    except ValidationError as error:
        raise ValidationError({"extra": error}) from error


def split_tags(text: str) -> set[str]:
    """The tags in a text of tags."""
    return {tag.strip() for tag in text.split(",")} - {""}


def policy(
    missed: str,
    grace_seconds: int | None,
    jitter_seconds: int,
    overlap: str,
    overlap_limit_seconds: int,
    paused: bool,
    paused_until: datetime | None,
) -> Policy:
    """The columns of `TaskOptions` as the engine's policy."""
    until = (paused_until or datetime.max.replace(tzinfo=UTC)) if paused else None
    return Policy(
        missed=missed if missed in ("skip", "all") else "latest",  # type: ignore[arg-type]
        grace=None if grace_seconds is None else timedelta(seconds=grace_seconds),
        jitter=timedelta(seconds=jitter_seconds),
        overlap="skip" if overlap == "skip" else "allow",
        overlap_limit=timedelta(seconds=overlap_limit_seconds),
        paused_until=until,
    )
