"""The fields of the four kinds of schedule inside a task's form, and the row that they mean.

A form's field is named `<kind>_<column>`. The rules are the models' own: an unsaved row is built, asked to clean
itself, and its errors are put on the fields they came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from onebeat.admin.words import zone_name
from onebeat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, SolarSchedule
from onebeat.models.fields import default_zone
from onebeat.models.schedule_value import ScheduleValue

MODELS: dict[str, type[ScheduleValue]] = {
    model.KIND: model for model in (IntervalSchedule, CrontabSchedule, SolarSchedule, ClockedSchedule)
}


class ClockField(forms.SplitDateTimeField):
    """Date and time, with the browser's calendar of the admin."""

    widget = AdminSplitDateTime


def name_parts(form: forms.BaseForm) -> None:
    """Name the zone of each date and time, and its two inputs for screen readers: the admin gives them no name."""
    for each in form.fields.values():
        if isinstance(each.widget, forms.MultiWidget) and len(each.widget.widgets) == 2:
            for part, word in zip(each.widget.widgets, (_("date"), _("time")), strict=True):
                part.attrs["aria-label"] = f"{each.label}: {word}"
            each.help_text = f"{each.help_text} ({zone_name()})" if each.help_text else zone_name()


def names(kind: str) -> list[str]:
    """The form's fields for this kind, in order."""
    return [f"{kind}_{column}" for column in MODELS[kind].VALUE]


def field(kind: str, column: str) -> forms.Field:
    """The form's field for one column: the model's own, never required by itself, since three kinds stay empty."""
    column_field = cast("models.Field[object, object]", MODELS[kind]._meta.get_field(column))
    if kind == "clocked":
        return cast(forms.Field, column_field.formfield(form_class=ClockField, required=False))
    made = cast(forms.Field, column_field.formfield(required=False))
    if column == "timezone":
        # Not the hidden copy of it that Django writes for a default that is computed: the row would be two fields.
        made.initial, made.show_hidden_initial = default_zone, False
    elif kind == "crontab":
        # Once a day to begin with. By the columns' own defaults, "* 9 * * *" would run each minute from 9:00 to 9:59.
        made.initial = {"minute": "0", "hour": "9"}.get(column, "*")
    if isinstance(made, forms.CharField) and kind == "crontab":
        made.widget.attrs.update({"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false", "size": 12})
    return made


def initial(schedule: ScheduleValue) -> dict[str, object]:
    """What the fields show for a row."""
    kind = schedule.KIND
    found = {f"{kind}_{column}": getattr(schedule, column) for column in schedule.VALUE}
    if kind == "crontab":
        found["crontab_timezone"] = str(found["crontab_timezone"])
    return found


def build(kind: str, cleaned: Mapping[str, object]) -> ScheduleValue:
    """The unsaved row that the fields of a form mean. Raises `ValidationError` with the form's names of the fields."""
    row = MODELS[kind](**{column: cleaned.get(f"{kind}_{column}") for column in MODELS[kind].VALUE})
    try:
        row.clean_value()
    except ValidationError as error:
        raise ValidationError({f"{kind}_{column}": found for column, found in error.error_dict.items()}) from error
    return row
