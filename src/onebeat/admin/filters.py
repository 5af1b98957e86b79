"""Filters of the lists. None of them counts."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from onebeat.admin import status
from onebeat.models.rules import SCHEDULES
from onebeat.store import vendors

KINDS = {
    "interval": _("interval"),
    "crontab": _("crontab"),
    "solar": _("solar event"),
    "clocked": _("clocked time"),
}


ORIGINS = {"code": _("code"), "once": _("once")}


class StatusFilter(admin.SimpleListFilter):
    """On, paused, finished, off, set aside."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: Any, model_admin: Any) -> Any:
        return status.CHOICES

    def queryset(self, request: Any, queryset: Any) -> Any:
        key = self.value()
        if key not in dict(status.CHOICES):
            return queryset
        return status.having(queryset, str(key), vendors.now(queryset.db))


class OriginFilter(admin.SimpleListFilter):
    """Who made the task."""

    title = _("origin")
    parameter_name = "origin"

    def lookups(self, request: Any, model_admin: Any) -> Any:
        return list(ORIGINS.items())

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(onebeat_options__origin=self.value()) if self.value() in ORIGINS else queryset


class KindFilter(admin.SimpleListFilter):
    """The kind of schedule."""

    title = _("schedule")
    parameter_name = "kind"

    def lookups(self, request: Any, model_admin: Any) -> Any:
        return list(KINDS.items())

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(**{f"{self.value()}__isnull": False}) if self.value() in SCHEDULES else queryset
