"""The four kinds of schedule. One that several tasks share cannot be deleted: Django's page then names the tasks."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from onebeat.admin.listing import ScheduleList
from onebeat.admin.pages import OurAdmin
from onebeat.admin.words import WithReadings, schedule_words
from onebeat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, SolarSchedule
from onebeat.models.schedule_value import ScheduleValue


class ScheduleAdmin(OurAdmin):
    """What the four have in common."""

    list_display = ["in_words", "used_by"]

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[ScheduleList]:
        """The list that counts the users of each row of a page."""
        return ScheduleList

    @admin.display(description=_("schedule"))
    def in_words(self, schedule: ScheduleValue) -> str:
        """The schedule in words."""
        return schedule_words(schedule)

    @admin.display(description=_("tasks"))
    def used_by(self, schedule: ScheduleValue) -> int:
        """How many tasks use it."""
        return int(schedule.__dict__["onebeat_users"])


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(ScheduleAdmin):
    """Intervals."""

    search_fields = ["every", "period"]
    list_filter = ["period"]


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(WithReadings, ScheduleAdmin):
    """Crontabs."""

    list_display = ["in_words", "minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone", "used_by"]
    search_fields = ["minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone"]


@admin.register(SolarSchedule)
class SolarScheduleAdmin(ScheduleAdmin):
    """Solar events."""

    search_fields = ["event", "latitude", "longitude"]
    list_filter = ["event"]


@admin.register(ClockedSchedule)
class ClockedScheduleAdmin(ScheduleAdmin):
    """Instants."""

    list_display = ["clocked_time", "used_by"]
    search_fields = ["clocked_time"]
    list_filter = ["clocked_time"]
