"""What an action asks before it acts, and what it does to one task. The verbs of `onebeat.api` do the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from django import forms
from django.core.exceptions import ValidationError
from django.db import router
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from onebeat import api
from onebeat.admin import kinds
from onebeat.admin.forms import InstantField
from onebeat.admin.words import shown, zone_name
from onebeat.db import database_clock
from onebeat.errors import KeyTaken
from onebeat.models import PeriodicTask
from onebeat.store import task_states

if TYPE_CHECKING:
    from onebeat.admin.words import Text

#: As long as the column of the name.
_NAME = 200
#: What the page's form was given, by field.
Given = Mapping[str, Any]


class Unfit(Exception):
    """The action does not apply to this task; the text says why. The others go on."""


class ReasonForm(forms.Form):
    """Why. It goes into the history, and into the record of the runs that are skipped."""

    why = forms.CharField(label=_("Reason"), required=False, max_length=500, widget=forms.TextInput(attrs={"size": 60}))


class PauseForm(ReasonForm):
    """Why, and for how long."""

    until = InstantField(label=_("Until"), required=False, help_text=_("Empty: until somebody resumes it."))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kinds.name_parts(self)

    def clean_until(self) -> datetime | None:
        """Refuse a time that has passed: such a pause would end before it began."""
        until: datetime | None = self.cleaned_data["until"]
        if until is not None and until <= database_clock.now(router.db_for_read(PeriodicTask)):
            raise ValidationError(_("This time has passed. Choose a later one, or leave it empty."))
        return until


class ResumeForm(ReasonForm):
    """What becomes of the runs that the pause has skipped."""

    catch_up = forms.ChoiceField(
        label=_("Runs that were skipped"),
        initial="none",
        widget=forms.RadioSelect,
        choices=[
            ("none", _("Leave them skipped and go on with the next run")),
            ("latest", _("Run the newest of them now")),
            ("all", _("Run each of them now")),
        ],
    )


class Done(NamedTuple):
    """The task that the history is about, and the line for it."""

    task: PeriodicTask
    line: str


Do = Callable[[PeriodicTask, Given, object, str], Done]


@dataclass(frozen=True, slots=True)
class Act:
    """An action: what it is called, what it explains before it is done, the form that asks, and what it does.

    `do` takes a task, what the form was given, the user and the database, and raises `Unfit`. `adds`: it makes a task,
    so that it needs the permission to add.
    """

    name: str
    title: Text
    explains: Text
    do: Do
    form: type[forms.Form] = ReasonForm
    button: Text | None = None
    adds: bool = False

    @property
    def permission(self) -> str:
        """The permission of Django's that it needs: "add" or "change"."""
        return "add" if self.adds else "change"


def _run_now(task: PeriodicTask, given: Given, by: object, using: str) -> Done:
    run = api.run_now(task, given["why"], by=by, using=using)
    return Done(task, gettext("Asked to run now (message %(id)s)") % {"id": run.celery_task_id})


def _pause(task: PeriodicTask, given: Given, by: object, using: str) -> Done:
    until = given["until"]
    api.pause(task, given["why"], until, by=by, using=using)
    if until is None:
        return Done(task, gettext("Paused"))
    return Done(task, gettext("Paused until %(time)s") % {"time": f"{shown(until)} {zone_name()}"})


def _resume(task: PeriodicTask, given: Given, by: object, using: str) -> Done:
    if not api.resume(task, catch_up=given["catch_up"], why=given["why"], by=by, using=using):
        raise Unfit(gettext("it is not paused"))
    return Done(task, gettext("Resumed"))


def _skip_next(task: PeriodicTask, given: Given, by: object, using: str) -> Done:
    state = task_states.read(using, [task.pk]).get(task.pk)
    if state is None or state.due_at is None:
        raise Unfit(gettext("no run lies ahead"))
    if not api.skip(task, state.due_at, given["why"], by=by, using=using):
        raise Unfit(gettext("its next run was decided at this very moment"))
    return Done(task, gettext("Skipped the run at %(time)s") % {"time": f"{shown(state.due_at)} {zone_name()}"})


def _enable(task: PeriodicTask, given: Given, by: object, using: str) -> Done:
    if not api.enable(task, why=given["why"], by=by, using=using):
        raise Unfit(gettext("it is on already"))
    return Done(task, gettext("Enabled"))


def _disable(task: PeriodicTask, given: Given, by: object, using: str) -> Done:
    if not api.disable(task, why=given["why"], by=by, using=using):
        raise Unfit(gettext("it is off already"))
    return Done(task, gettext("Disabled"))


def _duplicate(task: PeriodicTask, given: Given, by: object, using: str) -> Done:
    for number in count(1):
        tail = gettext(" (copy)") if number == 1 else gettext(" (copy %(n)s)") % {"n": number}
        with suppress(KeyTaken):
            copy = api.duplicate(task, task.name[: _NAME - len(tail)] + tail, by=by, using=using)
            return Done(copy, gettext("Copied from %(name)s") % {"name": task.name})
    raise AssertionError("numbers do not end")


ACTS = {
    act.name: act
    for act in (
        Act(
            "run_now",
            _("Run now"),
            _("Each is sent once, as soon as a scheduler looks, beside its schedule. Also if it is off or paused."),
            _run_now,
        ),
        Act(
            "pause",
            _("Pause"),
            _("Runs whose time comes in the pause are skipped and recorded with the reason."),
            _pause,
            PauseForm,
        ),
        Act("resume", _("Resume"), _("Runs go on with the schedule."), _resume, ResumeForm),
        Act(
            "skip_next",
            _("Skip the next run"),
            _("The next run of each is taken out of its schedule; the ones after it stay."),
            _skip_next,
            button=_("Skip"),
        ),
        Act(
            "duplicate",
            _("Duplicate"),
            _("The copy has the same schedule, arguments and policies. It is off until you enable it."),
            _duplicate,
            adds=True,
        ),
        Act("enable", _("Enable"), _("Runs begin with the first match from now on."), _enable),
        Act("disable", _("Disable"), _("Nothing runs until it is enabled again."), _disable),
    )
}
