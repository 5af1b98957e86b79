"""What an action asks before it acts, and what it does to one task. The doing is the verbs' of `onebeat.api`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import router, transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from onebeat import api
from onebeat.admin import kinds
from onebeat.admin.forms import InstantField
from onebeat.admin.words import shown, zone_name
from onebeat.db import database_clock
from onebeat.models import PeriodicTask, TaskOptions
from onebeat.store import task_states

#: As long as the column of the name.
_NAME = 200


class Unfit(Exception):
    """This task cannot be treated so; the text says why. The others go on."""


class Reason(forms.Form):
    """Why. It goes into the history, and into the record of the runs that are skipped."""

    why = forms.CharField(label=_("Reason"), required=False, max_length=500, widget=forms.TextInput(attrs={"size": 60}))


class Pause(Reason):
    """Why, and for how long."""

    until = InstantField(label=_("Until"), required=False, help_text=_("Empty: until somebody resumes it."))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kinds.name_parts(self)

    def clean_until(self) -> Any:
        """Not a time that has passed: such a pause would end before it began."""
        until = self.cleaned_data["until"]
        if until is not None and until <= database_clock.now(router.db_for_read(PeriodicTask)):
            raise ValidationError(_("This time has passed. Choose a later one, or leave it empty."))
        return until


class Resume(Reason):
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


@dataclass(frozen=True, slots=True)
class Act:
    """An action: what it is called, what it asks, and what it does. `do` returns the line for the history."""

    name: str
    title: Any
    explains: Any
    button: Any
    form: type[forms.Form]
    do: Callable[[PeriodicTask, dict[str, Any], Any, str], str]
    adds: bool = False


def _run_now(task: PeriodicTask, given: dict[str, Any], by: Any, using: str) -> str:
    run = api.run_now(task, given["why"], by=by, using=using)
    return gettext("Asked to run now (message %(id)s)") % {"id": run.celery_task_id}


def _pause(task: PeriodicTask, given: dict[str, Any], by: Any, using: str) -> str:
    until = given["until"]
    api.pause(task, given["why"], until, by=by, using=using)
    if until is None:
        return gettext("Paused")
    return gettext("Paused until %(time)s") % {"time": f"{shown(until)} {zone_name()}"}


def _resume(task: PeriodicTask, given: dict[str, Any], by: Any, using: str) -> str:
    if not api.resume(task, catch_up=given["catch_up"], why=given["why"], by=by, using=using):
        raise Unfit(gettext("it is not paused"))
    return gettext("Resumed")


def _skip_next(task: PeriodicTask, given: dict[str, Any], by: Any, using: str) -> str:
    state = task_states.read(using, [task.pk]).get(task.pk)
    if state is None or state.due_at is None:
        raise Unfit(gettext("no run lies ahead"))
    if not api.skip(task, state.due_at, given["why"], by=by, using=using):
        raise Unfit(gettext("its next run was decided at this very moment"))
    return gettext("Skipped the run at %(time)s") % {"time": f"{shown(state.due_at)} {zone_name()}"}


def _switch(enabled: bool) -> Callable[[PeriodicTask, dict[str, Any], Any, str], str]:
    def do(task: PeriodicTask, given: dict[str, Any], by: Any, using: str) -> str:
        if task.enabled == enabled:
            raise Unfit(gettext("it is on already") if enabled else gettext("it is off already"))
        task.enabled = enabled
        task.save(using=using, update_fields=["enabled", "date_changed"])
        return gettext("Enabled") if enabled else gettext("Disabled")

    return do


def _duplicate(task: PeriodicTask, given: dict[str, Any], by: Any, using: str) -> str:
    options = TaskOptions.objects.using(using).filter(pk=task.pk).first()
    source = task.name
    task.pk, task._state.adding = None, True
    task.name = _free_name(source, using)
    task.enabled, task.last_run_at, task.total_run_count = False, None, 0
    task.save(using=using, force_insert=True)
    if options is not None:
        options.pk, options._state.adding, options.task = task.pk, True, task
        options.paused, options.paused_until, options.paused_why, options.paused_by = False, None, "", ""
        if hasattr(options, "link"):
            options.link = ""
        options.save(using=using, force_insert=True)
    return gettext("Copied from %(name)s") % {"name": source}


def _free_name(name: str, using: str) -> str:
    """The first name of its kind that no task has."""
    number = 1
    while True:
        tail = gettext(" (copy)") if number == 1 else gettext(" (copy %(n)s)") % {"n": number}
        free = name[: _NAME - len(tail)] + tail
        if not PeriodicTask._base_manager.using(using).filter(name=free).exists():
            return free
        number += 1


ACTS = {
    act.name: act
    for act in (
        Act(
            "run_now",
            _("Run now"),
            _("Each is sent once, as soon as a scheduler looks, beside its schedule. Also if it is off or paused."),
            _("Run now"),
            Reason,
            _run_now,
        ),
        Act(
            "pause",
            _("Pause"),
            _("Runs whose time comes in the pause are skipped and recorded with the reason."),
            _("Pause"),
            Pause,
            _pause,
        ),
        Act("resume", _("Resume"), _("Runs go on with the schedule."), _("Resume"), Resume, _resume),
        Act(
            "skip_next",
            _("Skip the next run"),
            _("The next run of each is taken out of its schedule; the ones after it stay."),
            _("Skip"),
            Reason,
            _skip_next,
        ),
        Act(
            "duplicate",
            _("Duplicate"),
            _("The copy has the same schedule, arguments and policies. It is off until you enable it."),
            _("Duplicate"),
            Reason,
            _duplicate,
            adds=True,
        ),
        Act(
            "enable", _("Enable"), _("Runs begin with the first match from now on."), _("Enable"), Reason, _switch(True)
        ),
        Act(
            "disable", _("Disable"), _("Nothing runs until it is enabled again."), _("Disable"), Reason, _switch(False)
        ),
    )
}


@dataclass
class Done:
    """What came of an action: the tasks it was done to, and for each of the others why not."""

    tasks: list[PeriodicTask]
    unfit: list[tuple[str, str]]


def perform(
    act: Act, tasks: Any, given: dict[str, Any], by: Any, using: str, log: Callable[[PeriodicTask, str], None]
) -> Done:
    """Do it to each task in a transaction of its own, so that one that cannot be treated so stops no other."""
    done = Done([], [])
    for task in tasks:
        name = task.name
        try:
            with transaction.atomic(using=using):
                line = act.do(task, given, by, using)
                log(task, f"{line}. {given['why']}" if given["why"] else f"{line}.")
        except (Unfit, ValidationError, ValueError, LookupError) as error:
            done.unfit.append((name, _text(error)))
        else:
            done.tasks.append(task)
    return done


def _text(error: Exception) -> str:
    return "; ".join(error.messages) if isinstance(error, ValidationError) else str(error)
