"""What the pages say about schedules and instants."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop

from onebeat.core.describe import describe
from onebeat.errors import InvalidSchedule
from onebeat.models import CrontabSchedule, PeriodicTask
from onebeat.models.celery_readings import look_up
from onebeat.models.instants import project_zone
from onebeat.models.schedule_value import ScheduleValue
from onebeat.models.task_rules import SCHEDULES

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

    AnyAdmin = admin.ModelAdmin[Any]
    #: Translated now, or when it is shown.
    Text = str | _StrPromise
else:
    AnyAdmin = object

#: The phrases of `core.describe` that it picks from a table: named here, so that translators are given them.
UNITS = [
    gettext_noop("every day"),
    gettext_noop("every %(n)s days"),
    gettext_noop("every %(n)s hours"),
    gettext_noop("every second"),
    gettext_noop("every %(n)s seconds"),
    gettext_noop("every microsecond"),
    gettext_noop("every %(n)s microseconds"),
    gettext_noop("astronomical dawn"),
    gettext_noop("civil dawn"),
    gettext_noop("nautical dawn"),
    gettext_noop("astronomical dusk"),
    gettext_noop("civil dusk"),
    gettext_noop("nautical dusk"),
    gettext_noop("solar noon"),
    gettext_noop("sunrise"),
    gettext_noop("sunset"),
]

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def schedule_words(schedule: ScheduleValue) -> str:
    """A schedule row in words; as it is written when no rule can be read from it."""
    try:
        return describe(schedule.recurrence(), gettext)
    except InvalidSchedule:
        return str(schedule)


def schedule_raw(schedule: ScheduleValue) -> str:
    """The five fields of a crontab row as they are written; empty where its words are those fields already, and for the
    other kinds, whose words say it all.
    """
    if not isinstance(schedule, CrontabSchedule):
        return ""
    text = " ".join(str(value) for value in schedule.value()[:5])
    return "" if schedule_words(schedule).startswith(text) else text


class WithReadings(AnyAdmin):
    """Mixed into the admin of rows that lead to crontabs: what Celery made of those that were taken over is looked up
    once for a page of the list.
    """

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """The list, with the readings of the page's crontabs."""
        page = super().get_changelist_instance(request)
        rows = [row if isinstance(row, CrontabSchedule) else row.crontab for row in page.result_list]
        look_up(page.queryset.db, [row for row in rows if row is not None])
        return page


def schedules_of(task: PeriodicTask) -> list[ScheduleValue]:
    """The schedule rows that a task points at: one, unless the row is broken."""
    rows = [getattr(task, kind) for kind in SCHEDULES]
    return [row for row in rows if row is not None]


def here() -> tzinfo:
    """The zone whose wall clock the pages show: the current one, or TIME_ZONE with USE_TZ off."""
    return timezone.get_current_timezone() if settings.USE_TZ else project_zone()


def zone_name() -> str:
    """The name of that zone."""
    return str(here())


def local(instant: datetime) -> datetime:
    """An instant on that wall clock."""
    return instant.astimezone(here())


def shown(instant: datetime | None) -> str | None:
    """An instant on that wall clock, to the second, or to the millisecond where it has a part of one: Django's own
    format ends at the minute.
    """
    if instant is None:
        return None
    return f"{local(instant):%Y-%m-%d %H:%M:%S}" + (f".{instant.microsecond // 1000:03}" if instant.microsecond else "")


def span(length: timedelta) -> str:
    """A length of time in one unit, short: `340 ms`, `12 s`, `5 min`, `3 h`, `2 days`."""
    if length < timedelta(seconds=1):
        return gettext("%(n)s ms") % {"n": length // timedelta(milliseconds=1)}
    for unit, next_unit, text in (
        (timedelta(seconds=1), _MINUTE, gettext("%(n)s s")),
        (_MINUTE, _HOUR, gettext("%(n)s min")),
        (_HOUR, _DAY, gettext("%(n)s h")),
    ):
        if length < 2 * next_unit:
            return text % {"n": length // unit}
    return gettext("%(n)s days") % {"n": length // _DAY}


def relative(instant: datetime, now: datetime) -> str:
    """How far an instant is from now: `in 5 min`, `3 h ago`."""
    if abs(instant - now) < timedelta(seconds=1):
        return gettext("now")
    if instant > now:
        return gettext("in %(span)s") % {"span": span(instant - now)}
    return gettext("%(span)s ago") % {"span": span(now - instant)}


def time_tag(instant: datetime | None, now: datetime) -> SafeString | None:
    """An instant as a `<time>`: relative to see, exact with its zone on hover and for a screen reader."""
    if instant is None:
        return None
    exact = f"{shown(instant)} {zone_name()}"
    return format_html(
        '<time class="ob-time" datetime="{}" title="{}">{}<span class="ob-hidden">, {}</span></time>',
        instant.isoformat(), exact, relative(instant, now), exact,
    )  # fmt: skip


def two(first: str, second: str, tag: str = "span") -> SafeString:
    """A cell of two lines, the second small and quiet; `code` as its tag for what is written for machines."""
    if not second:
        return format_html("{}", first)
    small = format_html("<code>{}</code>", second) if tag == "code" else format_html("{}", second)
    return format_html('{}<div class="ob-quiet ob-small">{}</div>', first, small)


def quiet(text: str) -> SafeString:
    """A text that is no news."""
    return format_html('<span class="ob-quiet">{}</span>', text)


def labelled(label: Text, cell: SafeString) -> SafeString:
    """A cell that says what it is where the narrow screen has no head of the table."""
    return format_html('<span class="ob-label">{}: </span>{}', label, cell)


def instant(name: str, label: Text) -> Callable[[AnyAdmin, Model], str | None]:
    """A read-only column for the engine's instant `name`, sortable."""

    @admin.display(description=label, ordering=name)
    def column(model_admin: AnyAdmin, row: Model) -> str | None:
        return shown(getattr(row, name))

    return column
