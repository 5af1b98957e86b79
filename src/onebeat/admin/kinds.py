"""The fields of the four kinds of schedule inside a task's form, and the row that they mean.

A form's field is named `<kind>_<column>`. The rules are the models' own: an unsaved row is built, asked to clean
itself, and its errors are put on the fields they came from.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from onebeat.admin.words import zone_name
from onebeat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, SolarSchedule
from onebeat.models.fields import default_zone

MODELS: dict[str, Any] = {one.KIND: one for one in (IntervalSchedule, CrontabSchedule, SolarSchedule, ClockedSchedule)}


class ClockField(forms.SplitDateTimeField):
    """Date and time, with the browser's calendar of the admin."""

    widget = AdminSplitDateTime


def name_parts(form: forms.BaseForm) -> None:
    """Name the zone of each date and time, and its two inputs for screen readers: the admin gives them no name."""
    for one in form.fields.values():
        if isinstance(one.widget, forms.MultiWidget) and len(one.widget.widgets) == 2:
            for part, word in zip(one.widget.widgets, (_("date"), _("time")), strict=True):
                part.attrs["aria-label"] = f"{one.label}: {word}"
            one.help_text = f"{one.help_text} ({zone_name()})" if one.help_text else zone_name()


def names(kind: str) -> list[str]:
    """The form's fields for this kind, in order."""
    return [f"{kind}_{column}" for column in MODELS[kind].VALUE]


def field(kind: str, column: str) -> Any:
    """The form's field for one column: the model's own, never required by itself, since three kinds stay empty."""
    column_field: Any = MODELS[kind]._meta.get_field(column)
    if kind == "clocked":
        return column_field.formfield(form_class=ClockField, required=False)
    made = column_field.formfield(required=False)
    if column == "timezone":
        made.initial = default_zone
    elif kind == "crontab":
        # Once a day to begin with. By the columns' own defaults, "* 9 * * *" would be somebody's nine o'clock.
        made.initial = {"minute": "0", "hour": "9"}.get(column, "*")
    if isinstance(made, forms.CharField) and kind == "crontab":
        made.widget.attrs.update({"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false", "size": 12})
    return made


def initial(schedule: Any) -> dict[str, Any]:
    """What the fields show for a row."""
    kind = schedule.KIND
    found = {f"{kind}_{column}": getattr(schedule, column) for column in schedule.VALUE}
    if kind == "crontab":
        found["crontab_timezone"] = str(found["crontab_timezone"])
    return found


def build(kind: str, cleaned: dict[str, Any]) -> Any:
    """The unsaved row that the fields of a form mean. Raises `ValidationError` with the form's names of the fields."""
    values = {column: cleaned.get(f"{kind}_{column}") for column in MODELS[kind].VALUE}
    if isinstance(clocked := values.get("clocked_time"), datetime) and timezone.is_naive(clocked):
        values["clocked_time"] = clocked
    row = MODELS[kind](**values)
    try:
        row.clean_value()
    except ValidationError as error:
        raise ValidationError({f"{kind}_{column}": found for column, found in error.error_dict.items()}) from error
    return row
