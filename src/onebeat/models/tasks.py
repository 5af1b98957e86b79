"""What to send, and on which schedule; and the old row that said when anything last changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta, tzinfo
from typing import Any, cast

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.db import models, router, transaction
from django.utils.translation import gettext_lazy as _

from onebeat.db import database_clock, transactions
from onebeat.models import change_hints, fields, task_rules
from onebeat.models.deletion import record_hints, with_its_one_task
from onebeat.models.edits import SAVE_ARGUMENTS, clean_values, for_form, plain
from onebeat.models.instants import from_utc, to_utc
from onebeat.models.schedules import ClockedSchedule, CrontabSchedule, IntervalSchedule, SolarSchedule

ONE_KIND = _("Choose one kind of schedule and leave the others empty.")

#: Fields that no plan depends on: a change in these alone needs no hint.
UNPLANNED = {"description", "last_run_at", "total_run_count", "date_changed"}


class PeriodicTaskQuerySet(models.QuerySet["PeriodicTask"]):
    """Raises `ValidationError`, naming the field, for what `save` would refuse. A clocked task becomes one-off."""

    def enabled(self) -> PeriodicTaskQuerySet:
        """Tasks that are enabled, with their schedules."""
        return self.filter(enabled=True).select_related("interval", "crontab", "solar", "clocked")

    def bulk_create(self, objs: Iterable[PeriodicTask], *args: Any, **kwargs: Any) -> list[PeriodicTask]:
        """Check the tasks, insert them, and leave a hint for each in the same transaction. Returns them."""
        tasks = list(objs)
        for task in tasks:
            _once_if_clocked(task)
            task_rules.check_task(task)
        self._for_write = True
        with transaction.atomic(using=self.db):
            made = super().bulk_create(tasks, *args, **kwargs)
            change_hints.changed(self.db, "task", [task.pk for task in made])
            untold = [task.name for task in made if task.pk is None]  # MySQL, or ignored conflicts
            for start in range(0, len(untold), 500):
                named = self.model._base_manager.using(self.db).filter(name__in=untold[start : start + 500])
                change_hints.changed_where(self.db, "task", named)
        return made

    def bulk_update(self, objs: Iterable[PeriodicTask], fields: Iterable[str], batch_size: int | None = None) -> int:
        """Check the tasks, update these fields of them, and leave the hints. Returns how many rows were matched."""
        tasks, names = list(objs), list(fields)
        clocked = bool({"clocked", "clocked_id"} & set(names))
        if clocked and "one_off" not in names:
            names.append("one_off")
        for task in tasks:
            if clocked:
                _once_if_clocked(task)
            task_rules.check_task(task, names)
        self._for_write = True
        with transaction.atomic(using=self.db):
            done = plain(self).bulk_update(tasks, names, batch_size)
            if set(names) - UNPLANNED:
                off = [task.pk for task in tasks if not task.enabled]
                change_hints.changed(self.db, "task", off, left_disabled=True)
                change_hints.changed(self.db, "task", {task.pk for task in tasks} - set(off))
        return done

    def update(self, **kwargs: object) -> int:
        """Check the values, update the rows, and leave the hints. Returns how many rows were matched.

        A choice of schedules that no task may have is looked for in the rows first.
        """
        clean_values(self.model, kwargs)
        for name in task_rules.JSON_FIELDS.keys() & kwargs.keys():
            if not hasattr(kwargs[name], "resolve_expression"):
                try:
                    task_rules.check_json(name, kwargs[name])
                    if name == "headers":
                        task_rules.check_headers(kwargs[name])
                except ValidationError as error:
                    raise ValidationError({name: error}) from error
        if kwargs.get("clocked", kwargs.get("clocked_id")) is not None:
            kwargs.setdefault("one_off", True)
        self._for_write = True
        with transactions.writing(self.db):
            for rows, errors in task_rules.broken_by_update(kwargs):
                if self.filter(rows).exists():
                    raise ValidationError(errors)
            if kwargs.keys() - UNPLANNED:
                change_hints.changed_where(self.db, "task", self, left_disabled=kwargs.get("enabled") is False)
            return super().update(**kwargs)

    update.alters_data = True  # type: ignore[attr-defined]

    def delete(self) -> tuple[int, dict[str, int]]:
        """Delete the tasks, and let it be known that something was deleted. Returns Django's counts."""
        self._for_write = True
        return record_hints(self.db, super().delete())

    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]


@fields.quiet
class PeriodicTask(models.Model):
    """A Celery task, what to send to it, and the one schedule it runs on."""

    name = models.CharField(_("name"), max_length=200, unique=True, help_text=_("Unique, for people to read."))
    task = models.CharField(
        _("Celery task"),
        max_length=200,
        help_text=_("The registered name, for example shop.tasks.send_invoices."),
    )
    interval = models.ForeignKey(
        IntervalSchedule,
        with_its_one_task,
        null=True,
        blank=True,
        verbose_name=_("interval"),
        help_text=ONE_KIND,
    )
    crontab = models.ForeignKey(
        CrontabSchedule,
        with_its_one_task,
        null=True,
        blank=True,
        verbose_name=_("crontab"),
        help_text=ONE_KIND,
    )
    solar = models.ForeignKey(
        SolarSchedule,
        with_its_one_task,
        null=True,
        blank=True,
        verbose_name=_("solar event"),
        help_text=ONE_KIND,
    )
    clocked = models.ForeignKey(
        ClockedSchedule,
        with_its_one_task,
        null=True,
        blank=True,
        verbose_name=_("clocked time"),
        help_text=ONE_KIND,
    )
    args = fields.JSONTextField(
        _("arguments"), blank=True, default="[]", help_text=_('A JSON list, for example ["a", 1].')
    )
    kwargs = fields.JSONTextField(
        _("keyword arguments"),
        blank=True,
        default="{}",
        help_text=_('A JSON object, for example {"full": true}.'),
    )
    queue = models.CharField(
        _("queue"),
        max_length=200,
        blank=True,
        null=True,
        default=None,
        help_text=_("Empty: where Celery routes the task."),
    )
    exchange = models.CharField(
        _("exchange"),
        max_length=200,
        blank=True,
        null=True,
        default=None,
        help_text=_("AMQP exchange to publish to."),
    )
    routing_key = models.CharField(
        _("routing key"),
        max_length=200,
        blank=True,
        null=True,
        default=None,
        help_text=_("AMQP routing key to publish with."),
    )
    headers = fields.JSONTextField(
        _("message headers"),
        blank=True,
        default="{}",
        help_text=_("A JSON object, added to the message's headers."),
    )
    priority = models.PositiveIntegerField(
        _("priority"),
        blank=True,
        null=True,
        default=None,
        validators=[MaxValueValidator(255)],
        help_text=_("0 to 255. Highest first on RabbitMQ, lowest first on Redis."),
    )
    expires = models.DateTimeField(
        _("ends at"), blank=True, null=True, help_text=_("The task does not run after this time.")
    )
    expire_seconds = models.PositiveIntegerField(
        _("message expires after"),
        blank=True,
        null=True,
        help_text=_("Seconds a message may wait for a worker before it is dropped."),
    )
    one_off = models.BooleanField(_("one-off"), default=False, help_text=_("Run once, then disable the task."))
    start_time = models.DateTimeField(
        _("starts at"), blank=True, null=True, help_text=_("The task does not run before this time.")
    )
    enabled = models.BooleanField(_("enabled"), default=True, help_text=_("A disabled task does not run."))
    last_run_at = models.DateTimeField(
        _("last run"), blank=True, null=True, editable=False, help_text=_("When the task was last sent.")
    )
    total_run_count = models.PositiveIntegerField(
        _("runs"), default=0, editable=False, help_text=_("How many times the task was sent.")
    )
    date_changed = models.DateTimeField(_("last changed"), auto_now=True, help_text=_("When the row was last saved."))
    description = models.TextField(_("description"), blank=True, help_text=_("Notes for people."))

    objects = cast("models.Manager[PeriodicTask]", PeriodicTaskQuerySet.as_manager())

    #: For code that sets it; see `PeriodicTasks.changed`.
    no_changes = False

    class Meta:
        app_label = "django_celery_beat"
        verbose_name = _("periodic task")
        verbose_name_plural = _("periodic tasks")

    def __str__(self) -> str:
        return f"{self.name}: {self.scheduler or '{no schedule}'}"

    @property
    def scheduler(self) -> IntervalSchedule | CrontabSchedule | SolarSchedule | ClockedSchedule | None:
        """The schedule row that the task runs on; None for a broken row that has none."""
        return self.interval or self.crontab or self.solar or self.clocked

    @property
    def schedule(self) -> Any:
        """The schedule as Celery's own object, for code that reads it. onebeat itself plans from the row."""
        scheduler = self.scheduler
        return None if scheduler is None else scheduler.schedule

    @property
    def expires_(self) -> Any:
        """`expires`, else `expire_seconds`."""
        return self.expires or self.expire_seconds

    def due_start_time(self, tz: tzinfo) -> datetime | None:
        """`start_time`; for a crontab its first match from there on, in the zone `tz`."""
        if self.crontab is None or self.start_time is None:
            return self.start_time
        return self.crontab.due_start_time(to_utc(self.start_time), tz)

    def schedule_errors(self) -> dict[str, str]:
        """What is wrong with the choice of schedule, by field. Empty where a child model has its own `validate_unique`,
        say for a kind of schedule that only it has: that decides then, as in django-celery-beat.
        """
        return {} if self._validates_by_itself() else task_rules.schedule_errors(self)

    def validate_unique(self, exclude: Collection[str] | None = None) -> None:
        """Part of `full_clean`: Django's check, and the choice of schedule."""
        super().validate_unique(exclude)
        errors = task_rules.schedule_errors(self)
        if errors and not errors.keys() & set(exclude or ()):  # else it has been said
            raise ValidationError(dict(errors))

    def _validates_by_itself(self) -> bool:
        return type(self).validate_unique is not PeriodicTask.validate_unique

    def check_row(self) -> None:
        """What `save` would refuse, for `fields.RowRule`. Raises `ValidationError` on each field that is wrong."""
        task_rules.check_task(self)

    def clean_fields(self, exclude: Any = None) -> None:
        """Part of `full_clean`: the rules too. A form for fewer fields gets what is wrong with the others as about the
        whole.
        """
        super().clean_fields(exclude)
        with for_form(self, exclude):
            task_rules.check_task(self)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save, and leave a hint for the engine in the same transaction. Raises `ValidationError` naming the field."""
        kwargs |= dict(zip(SAVE_ARGUMENTS, args, strict=False))
        using = kwargs.get("using") or router.db_for_write(type(self), instance=self)
        deferred = self.get_deferred_fields()
        if deferred and kwargs.get("update_fields") is None and not kwargs.get("force_insert"):
            # As Django's: of an object that was read in part, that part is written.
            loaded = [field for field in self._meta.concrete_fields if not field.primary_key]
            kwargs["update_fields"] = frozenset(field.name for field in loaded if field.attname not in deferred)
        touched = kwargs.get("update_fields")
        task_rules.check_task(self, touched)
        if self._validates_by_itself() and touched is None:
            self.validate_unique()
        with transaction.atomic(using=using):
            super().save(**kwargs)
            if touched is None or set(touched) - UNPLANNED:
                change_hints.changed(using, "task", [self.pk], left_disabled=not self.enabled)

    def delete(self, using: Any = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:
        """Delete the task, and let it be known that something was deleted. Returns Django's counts."""
        using = using or router.db_for_write(type(self), instance=self)
        return record_hints(using, super().delete(using, keep_parents))


@fields.quiet
class PeriodicTasks(models.Model):
    """One row for those who watch it, as django-celery-beat did, to see that something changed."""

    ident = models.SmallIntegerField(default=1, primary_key=True, unique=True)
    last_update = models.DateTimeField()

    class Meta:
        app_label = "django_celery_beat"
        verbose_name = _("periodic task track")
        verbose_name_plural = _("periodic task tracks")

    @classmethod
    def changed(cls, instance: object = None, **kwargs: object) -> None:
        """Kept for code that calls it. onebeat sees changes in the data and needs no call."""
        if not getattr(instance, "no_changes", False):
            cls.update_changed()

    @classmethod
    def update_changed(cls, *, using: str | None = None, **kwargs: object) -> None:
        """Move `last_update` to now. Kept for code that calls it; nothing in onebeat waits for it.

        By the database's clock, as everybody who moves it: a host that is behind would move it back.
        """
        now = database_clock.now(using or router.db_for_write(cls))
        cls.objects.using(using).update_or_create(ident=1, defaults={"last_update": from_utc(now)})

    @classmethod
    def last_change(cls) -> datetime | None:
        """When something changed last, as far as committed changes tell; None if nothing ever did.

        Changes that no scheduler has looked at yet count by their hints: nobody has moved `last_update` for them.
        """
        using = router.db_for_write(cls)
        moved: datetime | None = cls.objects.using(using).filter(pk=1).values_list("last_update", flat=True).first()
        hinted = change_hints.newest(using)
        if hinted is None:
            return moved
        # A hint may be older than the last look, if its transaction took long: it moves this all the same.
        return from_utc(hinted if moved is None else max(hinted, to_utc(moved) + timedelta(microseconds=1)))


def _once_if_clocked(task: PeriodicTask) -> None:
    if task_rules.chosen(task, "clocked"):
        task.one_off = True
