"""The forms. What is right or wrong is the models' to say; a form shows it on the field."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime
from django.core.exceptions import ValidationError
from django.core.validators import EMPTY_VALUES
from django.db import router
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from onebeat.admin import kinds, secrets
from onebeat.admin.filters import KINDS
from onebeat.admin.unchanged import StoredUnlessChanged
from onebeat.admin.words import schedules_of
from onebeat.dispatch.celery import app as celery_app
from onebeat.models import PeriodicTask, TaskOptions
from onebeat.models.instants import from_utc, to_utc
from onebeat.models.schedule_value import ScheduleValue
from onebeat.models.task_rules import SCHEDULES

if TYPE_CHECKING:
    TaskForm = forms.ModelForm[PeriodicTask]
    OptionsForm = forms.ModelForm[TaskOptions]
else:
    TaskForm = OptionsForm = forms.ModelForm


#: The codes of errors that only mean that a field is empty.
EMPTY = {"required", "null", "blank"}
#: The fields that a schedule is made of.
_PARTS = {name for kind in kinds.MODELS for name in kinds.names(kind)}


class TaskNameInput(forms.TextInput):
    """A text field that offers the registered tasks while one types, and takes any other name as well."""

    template_name = "onebeat/task_name.html"

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        """What the template is given: the names too."""
        context = super().get_context(name, value, attrs)
        context["names"] = sorted(celery_app.tasks())
        context["widget"]["attrs"]["list"] = f"{context['widget']['attrs'].get('id', name)}_names"
        return context


class PeriodicTaskForm(StoredUnlessChanged, TaskForm):
    """A task with its schedule in place: the kind is chosen, its fields are filled in, and the shared row behind
    them is found or made when the form is saved.

    A form for other fields that names `interval`, `crontab`, `solar` or `clocked` itself works as a plain one: without
    `kind` among the data nothing of this is looked at. Arguments and headers are edited as the JSON they are stored as.
    """

    kind = forms.ChoiceField(label=_("Kind"), choices=list(KINDS.items()), widget=forms.RadioSelect, required=False)
    interval_every = kinds.field("interval", "every")
    interval_period = kinds.field("interval", "period")
    crontab_minute = kinds.field("crontab", "minute")
    crontab_hour = kinds.field("crontab", "hour")
    crontab_day_of_month = kinds.field("crontab", "day_of_month")
    crontab_month_of_year = kinds.field("crontab", "month_of_year")
    crontab_day_of_week = kinds.field("crontab", "day_of_week")
    crontab_timezone = kinds.field("crontab", "timezone")
    solar_event = kinds.field("solar", "event")
    solar_latitude = kinds.field("solar", "latitude")
    solar_longitude = kinds.field("solar", "longitude")
    clocked_clocked_time = kinds.field("clocked", "clocked_time")

    class Meta:
        model = PeriodicTask
        fields = "__all__"
        widgets = {
            "task": TaskNameInput(attrs={"class": "vTextField", "spellcheck": "false"}),
            **{
                name: forms.Textarea(attrs={"rows": 3, "cols": 80, "class": "vLargeTextField", "spellcheck": "false"})
                for name in ("args", "kwargs", "headers")
            },
            "description": forms.Textarea(attrs={"rows": 2, "cols": 80, "class": "vLargeTextField"}),
        }

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        kinds.name_parts(self)
        self.schedule: ScheduleValue | None = None
        if self.is_bound and self.add_prefix("kind") not in self.data:
            # Sent by a page that has the old fields.
            for name in ("kind", *_PARTS):
                self.fields.pop(name, None)
        rows = schedules_of(self.instance)
        # A broken row has several schedules: whoever chooses one drops the others.
        self.initial.setdefault("kind", "interval" if not rows else rows[0].KIND if len(rows) == 1 else "")
        for row in rows:
            self.initial.update({key: value for key, value in kinds.initial(row).items() if key in self.fields})
        self.offer_stored()
        for name in secrets.FIELDS:
            if name in self.initial:
                self.initial[name] = secrets.masked(self.initial[name])

    @cached_property
    def changed_data(self) -> list[str]:
        """What somebody changed; the fields of the kinds that are not chosen do not count."""
        kind = str(self["kind"].data) if "kind" in self.fields else ""
        return [name for name in super().changed_data if name not in _PARTS or name.startswith(f"{kind}_")]

    def clean(self) -> dict[str, object]:
        """Put the schedule that the fields mean on the task, and secrets back that were left masked."""
        cleaned = super().clean()
        for name in secrets.FIELDS:
            if name in cleaned and name in self.changed_data:
                cleaned[name] = secrets.restored(cleaned[name], getattr(self.instance, name))
        if (kind := cleaned.get("kind")) and (self.instance._state.adding or self.has_changed()):
            self._choose(kind, cleaned)
        else:
            self.schedule = self.instance.scheduler
        return cleaned

    def _choose(self, kind: str, cleaned: dict[str, object]) -> None:
        before = self.instance.scheduler
        same = before is not None and not {"kind", *kinds.names(kind)} & set(self.changed_data)
        # A row that breaks a rule of today stays as it is until somebody changes it.
        row = before if same else self._built(kind, cleaned)
        if row is None:
            # An error stands on a field already: a second one, that no schedule is chosen, would say nothing.
            row = kinds.MODELS[kind]()
        for name in SCHEDULES:
            value = row if name == kind else None
            setattr(self.instance, name, value)
            if name in self.fields:
                cleaned[name] = value
        if kind == "clocked":
            cleaned["one_off"] = self.instance.one_off = True
        self.schedule = row

    def _built(self, kind: str, cleaned: dict[str, object]) -> ScheduleValue | None:
        for name in kinds.names(kind):
            if name not in self.errors and cleaned.get(name) in EMPTY_VALUES:
                self.add_error(name, ValidationError(self.fields[name].error_messages["required"], code="required"))
        if self.errors.keys() & set(kinds.names(kind)):
            return None
        try:
            return kinds.build(kind, cleaned)
        except ValidationError as error:
            for name, errors in error.error_dict.items():
                self.add_error(name, errors)
        return None

    def save(self, commit: bool = True) -> PeriodicTask:
        """Save the task; the schedule's one row is found or made first, whoever else needs it at this moment."""
        row = self.schedule
        if row is not None and row.pk is None:
            using = router.db_for_write(type(self.instance), instance=self.instance)
            values = dict(zip(row.VALUE, row.value(), strict=True))
            found = type(row)._default_manager.using(using).get_or_create(**values)[0]
            setattr(self.instance, row.KIND, found)
        task: PeriodicTask = super().save(commit)
        return task

    def add_error(self, field: str | None, error: Any) -> None:
        """Put an error on its field; above the form, if that is a field that a form for fewer fields leaves out."""
        if field is None and isinstance(error, ValidationError) and hasattr(error, "error_dict"):
            for name, errors in error.error_dict.items():
                super().add_error(name if name in self.fields else None, errors)
        else:
            super().add_error(field, error)

    def warnings(self) -> list[tuple[str, str]]:
        """Likely mistakes that are allowed all the same, each as (field, sentence)."""
        name = self.cleaned_data.get("task")
        if not name:
            return []
        task = celery_app.tasks().get(name)
        if task is None:
            if name in celery_app.task_names():
                return []
            return [("task", gettext("No task of this name is registered here. A worker may know it all the same."))]
        args, kwargs = (secrets.read(self.cleaned_data.get(field)) for field in ("args", "kwargs"))
        error = celery_app.misfit(task, [] if args is None else args, {} if kwargs is None else kwargs)
        if error is None:
            return []
        text = gettext("The arguments do not fit the task: %(error)s. It takes %(signature)s.")
        return [("args", text % {"error": error, "signature": celery_app.signature(task)})]


class InstantField(forms.SplitDateTimeField):
    """An instant of the engine's columns, read and written as wall clock of the current zone like every other time.

    With USE_TZ off that is TIME_ZONE, which Django's own field would leave out on both ways.
    """

    widget = AdminSplitDateTime

    def prepare_value(self, value: object) -> object:
        return from_utc(value) if isinstance(value, datetime) and value.tzinfo is not None else value

    def has_changed(self, initial: object, data: object) -> bool:
        return super().has_changed(self.prepare_value(initial), data)

    def compress(self, data_list: Any) -> datetime | None:
        value = super().compress(data_list)
        return None if value is None else to_utc(value)


class TaskOptionsForm(StoredUnlessChanged, OptionsForm):
    """A task's policies and pause."""

    paused_until = InstantField(required=False, label=_("Paused until"))

    class Meta:
        model = TaskOptions
        fields = "__all__"
        widgets = {
            "paused_why": forms.Textarea(attrs={"rows": 2, "cols": 80}),
            "missed": forms.RadioSelect,
            "overlap": forms.RadioSelect,
            "extra": forms.TextInput(attrs={"size": 60, "spellcheck": "false"}),
        }

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        kinds.name_parts(self)
