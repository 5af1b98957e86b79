"""The four kinds of schedule. A row is a value, shared by every task that runs on it."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, router
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from onebeat.core.describe import describe
from onebeat.core.recurrence import EPOCH, Cron, Recurrence, check_crontab, rule_of
from onebeat.errors import InvalidSchedule
from onebeat.models import fields
from onebeat.models.celery_readings import CeleryReading, readings
from onebeat.models.indexes import one_row_for_each_value
from onebeat.models.instants import to_utc
from onebeat.models.schedule_value import ScheduleQuerySet, ScheduleValue

DAYS = "days"
HOURS = "hours"
MINUTES = "minutes"
SECONDS = "seconds"
MICROSECONDS = "microseconds"

PERIOD_CHOICES = (
    (DAYS, _("Days")),
    (HOURS, _("Hours")),
    (MINUTES, _("Minutes")),
    (SECONDS, _("Seconds")),
    (MICROSECONDS, _("Microseconds")),
)

SINGULAR_PERIODS = (
    (DAYS, _("Day")),
    (HOURS, _("Hour")),
    (MINUTES, _("Minute")),
    (SECONDS, _("Second")),
    (MICROSECONDS, _("Microsecond")),
)

SOLAR_SCHEDULES = [
    ("dawn_astronomical", _("Astronomical dawn")),
    ("dawn_civil", _("Civil dawn")),
    ("dawn_nautical", _("Nautical dawn")),
    ("dusk_astronomical", _("Astronomical dusk")),
    ("dusk_civil", _("Civil dusk")),
    ("dusk_nautical", _("Nautical dusk")),
    ("solar_noon", _("Solar noon")),
    ("sunrise", _("Sunrise")),
    ("sunset", _("Sunset")),
]


@fields.quiet
@one_row_for_each_value
class IntervalSchedule(ScheduleValue):
    """Every so many days, hours, minutes, seconds or microseconds of elapsed time."""

    VALUE = ("every", "period")
    KIND = "interval"

    DAYS = DAYS
    HOURS = HOURS
    MINUTES = MINUTES
    SECONDS = SECONDS
    MICROSECONDS = MICROSECONDS
    PERIOD_CHOICES = PERIOD_CHOICES

    every = fields.WholeField(
        _("how many"),
        validators=[MinValueValidator(1), MaxValueValidator(2**31 - 1)],  # the column's width, SQLite's is wider
        help_text=_("Length of the interval, counted in the unit below."),
    )
    period = fields.WordField(
        _("unit"),
        max_length=24,
        choices=PERIOD_CHOICES,
        help_text=_("Unit of the interval, for example days."),
    )

    objects: ClassVar[models.Manager[IntervalSchedule]] = ScheduleQuerySet.as_manager()

    class Meta:
        app_label = "django_celery_beat"
        verbose_name = _("interval")
        verbose_name_plural = _("intervals")
        ordering = ["period", "every"]
        constraints = [
            models.UniqueConstraint(
                fields=["every", "period"],
                name="onebeat_interval_value",
            )
        ]

    @property
    def period_singular(self) -> str:
        """The unit's name for one of it: `day` for `days`."""
        return str(self.period)[:-1]

    @classmethod
    def from_schedule(cls, schedule: object, period: str = SECONDS) -> IntervalSchedule:
        """The row for a Celery schedule, made if need be, counted in `period` or, where that would lose a part, in
        microseconds. Raises `ValidationError` if neither can hold it."""
        return cls.objects.get_or_create(**cls.value_of(schedule, period))[0]

    @classmethod
    def value_of(cls, schedule: Any, period: str = SECONDS) -> dict[str, Any]:
        """The value of a Celery schedule by field, counted as `from_schedule` counts."""
        run_every = schedule.run_every
        every, rest = divmod(run_every, timedelta(**{period: 1}))
        if rest:
            every, period = run_every // timedelta(microseconds=1), cls.MICROSECONDS
        return {"every": every, "period": period}

    def __str__(self) -> str:
        if self.every == 1:
            return str(_("every {unit}").format(unit=dict(SINGULAR_PERIODS).get(self.period, self.period)).lower())
        return str(_("every {count} {unit}").format(count=self.every, unit=self.get_period_display()).lower())


@fields.quiet
@one_row_for_each_value
class CrontabSchedule(ScheduleValue):
    """The minutes of a zone's wall clock that match five crontab fields, all of them at once."""

    VALUE = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone")
    KIND = "crontab"

    minute = fields.CronField(
        _("minutes"),
        max_length=60 * 4,
        default="*",
        help_text=_('0 to 59, "*" for every minute. Example: 0,30'),
    )
    hour = fields.CronField(
        _("hours"), max_length=24 * 4, default="*", help_text=_('0 to 23, "*" for every hour. Example: 8-18')
    )
    day_of_month = fields.CronField(
        _("days of the month"),
        max_length=31 * 4,
        default="*",
        help_text=_(
            '1 to 31, "L" for the last, "*" for every day. The day of the week must match as well. Example: 1,15'
        ),
    )
    month_of_year = fields.CronField(
        _("months"),
        max_length=64,
        default="*",
        help_text=_('1 to 12 or names, "*" for every month. Example: jan,jul'),
    )
    day_of_week = fields.CronField(
        _("days of the week"),
        max_length=64,
        default="*",
        help_text=_(
            '0 to 7 or names, 0 and 7 are Sunday, "*" for every day. '
            "The day of the month must match as well. Example: mon-fri"
        ),
    )
    timezone = fields.ZoneField(
        _("time zone"), default=fields.default_zone, help_text=_("The zone whose wall clock is meant.")
    )

    objects: ClassVar[models.Manager[CrontabSchedule]] = ScheduleQuerySet.as_manager()

    class Meta:
        app_label = "django_celery_beat"
        verbose_name = _("crontab")
        verbose_name_plural = _("crontabs")
        ordering = ["month_of_year", "day_of_month", "day_of_week", "hour", "minute", "timezone"]
        constraints = [
            models.UniqueConstraint(
                fields=["minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone"],
                name="onebeat_crontab_value",
            )
        ]

    def check_rule(self) -> None:
        check_crontab(self.minute, self.hour, self.day_of_month, self.month_of_year, self.day_of_week)

    @property
    def human_readable(self) -> str:
        """The rule in words, in the active language; as it is written where it cannot be read."""
        try:
            return describe(self.recurrence(), gettext)
        except InvalidSchedule:
            return str(self)

    def recurrence(self, anchor: datetime = EPOCH) -> Recurrence:
        """The rule; of a row that was taken over, as Celery read it. Raises `InvalidSchedule` if there is none."""
        taken_over = self._reading()
        return super().recurrence(anchor) if taken_over is None else taken_over.cron()

    def keeps_reading(self) -> bool:
        """Whether this is a row that was taken over, unchanged, whose meaning is not what its text says."""
        taken_over = self._reading()
        return taken_over is not None and bool(taken_over.meaning)

    def _reading(self) -> CeleryReading | None:
        if self._state.adding or self.pk is None:
            return None
        if "_onebeat_reading" in self.__dict__:  # a list of rows was looked up in one go
            found: CeleryReading | None = self.__dict__["_onebeat_reading"]
            return found if found is not None and found.text == " ".join(map(str, self.value())) else None
        return readings(self._state.db or router.db_for_read(type(self)), {self.pk: self.value()}).get(self.pk)

    def due_start_time(self, initial_start_time: datetime, tz: tzinfo) -> datetime:
        """The first match at or after an aware `initial_start_time`, in the zone `tz`; itself if there is none."""
        first = Cron(*self.value()).after(initial_start_time - timedelta(microseconds=1))
        return (first or initial_start_time).astimezone(tz)

    def get_timezone_display(self) -> str:
        """The zone's name for people."""
        return str(self.timezone).replace("_", " ")

    @classmethod
    def from_schedule(cls, schedule: object) -> CrontabSchedule:
        """The row for a Celery crontab, made if need be."""
        return cls.objects.get_or_create(**cls.value_of(schedule))[0]

    @classmethod
    def value_of(cls, schedule: Any) -> dict[str, Any]:
        """The value of a Celery crontab by field, as it was written."""
        return {
            "minute": schedule._orig_minute,
            "hour": schedule._orig_hour,
            "day_of_month": schedule._orig_day_of_month,
            "month_of_year": schedule._orig_month_of_year,
            "day_of_week": schedule._orig_day_of_week,
            "timezone": schedule.tz,
        }

    def __str__(self) -> str:
        texts = (self.minute, self.hour, self.day_of_month, self.month_of_year, self.day_of_week)
        return f"{' '.join('*' if text is None else str(text) for text in texts)} (m/h/dM/MY/d) {self.timezone}"


@fields.quiet
@one_row_for_each_value
class SolarSchedule(ScheduleValue):
    """An event of the sun as seen from one place."""

    VALUE = ("event", "latitude", "longitude")
    KIND = "solar"

    event = fields.WordField(_("event"), max_length=24, choices=SOLAR_SCHEDULES, help_text=_("What the sun does."))
    latitude = fields.CoordinateField(
        _("latitude"),
        max_digits=9,
        decimal_places=6,
        validators=[MinValueValidator(-90), MaxValueValidator(90)],
        help_text=_("Degrees, north is positive."),
    )
    longitude = fields.CoordinateField(
        _("longitude"),
        max_digits=9,
        decimal_places=6,
        validators=[MinValueValidator(-180), MaxValueValidator(180)],
        help_text=_("Degrees, east is positive."),
    )

    objects: ClassVar[models.Manager[SolarSchedule]] = ScheduleQuerySet.as_manager()

    class Meta:
        app_label = "django_celery_beat"
        verbose_name = _("solar event")
        verbose_name_plural = _("solar events")
        ordering = ("event", "latitude", "longitude")
        unique_together = ("event", "latitude", "longitude")

    @classmethod
    def from_schedule(cls, schedule: object) -> SolarSchedule:
        """The row for a Celery solar schedule, made if need be."""
        return cls.objects.get_or_create(**cls.value_of(schedule))[0]

    @classmethod
    def value_of(cls, schedule: Any) -> dict[str, Any]:
        """The value of a Celery solar schedule by field."""
        return {"event": schedule.event, "latitude": schedule.lat, "longitude": schedule.lon}

    def __str__(self) -> str:
        return f"{self.get_event_display()} ({float(self.latitude):g}, {float(self.longitude):g})"


@fields.quiet
@one_row_for_each_value
class ClockedSchedule(ScheduleValue):
    """One instant."""

    VALUE = ("clocked_time",)
    KIND = "clocked"

    clocked_time = fields.ClockField(_("time"), help_text=_("When to run, once."))

    objects: ClassVar[models.Manager[ClockedSchedule]] = ScheduleQuerySet.as_manager()

    class Meta:
        app_label = "django_celery_beat"
        verbose_name = _("clocked")
        verbose_name_plural = _("clocked")
        ordering = ["clocked_time"]
        constraints = [
            models.UniqueConstraint(
                fields=["clocked_time"],
                name="onebeat_clocked_value",
            )
        ]

    def recurrence(self, anchor: datetime = EPOCH) -> Recurrence:
        """The rule of this one instant. Raises `InvalidSchedule` if the row holds none."""
        return rule_of(self.KIND, [self.clocked_time and to_utc(self.clocked_time)], anchor)

    @classmethod
    def from_schedule(cls, schedule: object) -> ClockedSchedule:
        """The row for an instant, made if need be: a datetime, or anything with a `clocked_time`."""
        return cls.objects.get_or_create(**cls.value_of(schedule))[0]

    @classmethod
    def value_of(cls, schedule: Any) -> dict[str, Any]:
        """The instant by field. Raises `ValidationError` for what is none."""
        instant = getattr(schedule, "clocked_time", schedule)
        if not isinstance(instant, datetime):
            raise ValidationError({"clocked_time": f"an instant is needed, not {instant!r}"})
        return {"clocked_time": instant}

    def __str__(self) -> str:
        return str(self.clocked_time)
