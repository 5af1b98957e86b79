"""The actions, of the list and of a single task: each asks first, by a page of its own, and acts on POST alone."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from onebeat.admin.acting import ACTS, Act, Done, perform
from onebeat.admin.listing import beside
from onebeat.admin.pages import alarm

#: How many names a page or a message lists.
_NAMED = 20


class TaskActions:
    """For `PeriodicTaskAdmin.actions`."""

    @admin.action(description=_("Run now …"), permissions=["change"])
    def run_now(self, request: Any, queryset: Any) -> Any:
        """Send once, now."""
        return act(self, request, queryset, ACTS["run_now"])

    @admin.action(description=_("Pause …"), permissions=["change"])
    def pause(self, request: Any, queryset: Any) -> Any:
        """Skip runs for a while, with a reason."""
        return act(self, request, queryset, ACTS["pause"])

    @admin.action(description=_("Resume …"), permissions=["change"])
    def resume(self, request: Any, queryset: Any) -> Any:
        """End a pause."""
        return act(self, request, queryset, ACTS["resume"])

    @admin.action(description=_("Skip the next run …"), permissions=["change"])
    def skip_next(self, request: Any, queryset: Any) -> Any:
        """Take the next run out of the schedule."""
        return act(self, request, queryset, ACTS["skip_next"])

    @admin.action(description=_("Duplicate …"), permissions=["add"])
    def duplicate(self, request: Any, queryset: Any) -> Any:
        """Copy, switched off."""
        return act(self, request, queryset, ACTS["duplicate"])

    @admin.action(description=_("Enable …"), permissions=["change"])
    def enable(self, request: Any, queryset: Any) -> Any:
        """Switch on."""
        return act(self, request, queryset, ACTS["enable"])

    @admin.action(description=_("Disable …"), permissions=["change"])
    def disable(self, request: Any, queryset: Any) -> Any:
        """Switch off."""
        return act(self, request, queryset, ACTS["disable"])

    def act_view(self, request: Any, object_id: str, name: str) -> HttpResponse:
        """The page that asks, for one task. It acts on nothing: its form goes to the list."""
        model_admin: Any = self
        found = ACTS.get(name)
        task = model_admin.get_object(request, object_id) if found else None
        if found is None or task is None:
            raise Http404
        if not _allowed(model_admin, request, found):
            raise PermissionDenied
        return _ask(model_admin, request, found, found.form(), [task], 1, one=task)

    def onebeat_acts(self, request: Any, task: Any) -> list[Act]:
        """What this person can do with this task as it is now."""
        options = beside(task, "onebeat_options")
        paused = options is not None and options.paused
        fits = {"enable": not task.enabled, "disable": task.enabled, "resume": paused, "pause": not paused}
        return [act for act in ACTS.values() if fits.get(act.name, True) and _allowed(self, request, act)]


def _allowed(model_admin: Any, request: Any, found: Act) -> bool:
    allowed = model_admin.has_add_permission if found.adds else model_admin.has_change_permission
    return bool(allowed(request))


def act(model_admin: Any, request: Any, queryset: Any, found: Act) -> Any:
    """Ask, and when the answer is there, act. Django has checked the permission."""
    form = found.form(request.POST) if request.POST.get("post") else found.form()
    if not form.is_bound or not form.is_valid():
        shown = list(queryset[:_NAMED])
        return _ask(model_admin, request, found, form, shown, queryset.count())

    def log(task: Any, line: str) -> None:
        write = model_admin.log_addition if found.adds else model_admin.log_change
        write(request, task, line)

    done = perform(found, queryset, form.cleaned_data, request.user, queryset.db, log)
    _say(request, found, done)
    one = request.POST.get("onebeat_one")
    if found.adds and len(done.tasks) == 1:
        one = str(done.tasks[0].pk)
    if one and done.tasks:
        return HttpResponseRedirect(model_admin.url_of("change", one))
    return HttpResponseRedirect(request.get_full_path())


def _say(request: Any, found: Act, done: Done) -> None:
    if done.tasks:
        count = len(done.tasks)
        text = ngettext("%(action)s: %(count)s task.", "%(action)s: %(count)s tasks.", count)
        messages.success(request, text % {"action": found.title, "count": count})
    for name, why in done.unfit[:_NAMED]:
        messages.warning(request, gettext("%(name)s was left as it is: %(why)s.") % {"name": name, "why": why})
    if len(done.unfit) > _NAMED:
        messages.warning(request, gettext("And %(count)s others.") % {"count": len(done.unfit) - _NAMED})


def _ask(
    model_admin: Any, request: Any, found: Act, form: Any, tasks: list[Any], count: int, one: Any = None
) -> HttpResponse:
    site = model_admin.admin_site
    across = request.POST.get("select_across") == "1"
    chosen = request.POST.getlist(helpers.ACTION_CHECKBOX_NAME) if one is None else [str(one.pk)]
    context = {
        **site.each_context(request),
        "title": found.title,
        "opts": model_admin.opts,
        "media": model_admin.media + form.media,
        "onebeat_alarm": alarm(request),
        "act": found,
        "form": form,
        "tasks": tasks,
        "count": count,
        "more": max(0, count - len(tasks)),
        "chosen": chosen,
        "across": across,
        "one": request.POST.get("onebeat_one") if one is None else one.pk,
        "checkbox": helpers.ACTION_CHECKBOX_NAME,
        "action": request.get_full_path() if one is None else model_admin.url_of("changelist"),
    }
    return render(request, "onebeat/act.html", context)
