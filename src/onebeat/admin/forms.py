"""The forms. What is right or wrong is the models' to say; a form shows it on the field."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime
from django.core.exceptions import ValidationError

from onebeat.models import PeriodicTask, TaskOptions
from onebeat.models.instants import from_utc, to_utc

if TYPE_CHECKING:
    TaskForm = forms.ModelForm[PeriodicTask]
    OptionsForm = forms.ModelForm[TaskOptions]
else:
    TaskForm = OptionsForm = forms.ModelForm


class PeriodicTaskForm(TaskForm):
    """A task. Arguments and headers are edited as the JSON they are stored as."""

    class Meta:
        model = PeriodicTask
        fields = "__all__"
        widgets = {
            name: forms.Textarea(attrs={"rows": 3, "cols": 80, "class": "vLargeTextField", "spellcheck": "false"})
            for name in ("args", "kwargs", "headers")
        }

    def add_error(self, field: str | None, error: Any) -> None:
        """As Django's; an error about a field that a form for fewer fields leaves out is shown above the form."""
        if field is None and isinstance(error, ValidationError) and hasattr(error, "error_dict"):
            for name, errors in error.error_dict.items():
                super().add_error(name if name in self.fields else None, errors)
        else:
            super().add_error(field, error)


class InstantField(forms.SplitDateTimeField):
    """An instant of the engine's columns, read and written as wall clock of the current zone like every other time.

    With USE_TZ off that is TIME_ZONE, which Django's own field would leave out on both ways.
    """

    widget = AdminSplitDateTime

    def prepare_value(self, value: Any) -> Any:
        return from_utc(value) if isinstance(value, datetime) and value.tzinfo is not None else value

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), data)

    def compress(self, data_list: Any) -> datetime | None:
        value = super().compress(data_list)
        return None if value is None else to_utc(value)


class TaskOptionsForm(OptionsForm):
    """A task's policies and pause."""

    paused_until = InstantField(required=False)

    class Meta:
        model = TaskOptions
        fields = "__all__"
        widgets = {"paused_why": forms.Textarea(attrs={"rows": 2, "cols": 80})}
