"""The actions, of the list and of a single task: each asks first, by a page of its own, and acts on POST alone.

A request treats a portion of the selection, in the order of the keys, and then a page says how far it came and goes on
with the next. Each task is a transaction of its own, run again when the database asks for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DatabaseError, connections, transaction
from django.db.models import Max, QuerySet
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern
from django.utils.text import format_lazy
from django.utils.translation import gettext, ngettext

from onebeat.admin.acting import ACTS, Act, Given, Unfit
from onebeat.admin.listing import options_of
from onebeat.admin.pages import OurAdmin, Tool, alarm, url_of
from onebeat.core import clock
from onebeat.db import transactions
from onebeat.models import PeriodicTask

if TYPE_CHECKING:
    TaskAdmin = admin.ModelAdmin[PeriodicTask]
else:
    TaskAdmin = admin.ModelAdmin

Tasks = QuerySet[PeriodicTask]
Action = Callable[[TaskAdmin, HttpRequest, Tasks], HttpResponse]

#: A request treats at most so many tasks, and begins none after so long.
PORTION, BUDGET_SECONDS = 1000, 10.0
#: For so long one task is tried again when the database asks for that.
RETRY_SECONDS = 10.0
#: How many names a page or a message lists, and how far a selection is counted.
_NAMED, _COUNTED = 20, 10_000


@dataclass
class Progress:
    """How far an action on a selection has come; it travels through the pages that go on with it.

    `after` is the key of the task treated last, `last` that of the last one to treat: what the action itself makes is
    not treated again. `count` tasks were treated before this request, `left` were left as they were.
    """

    after: int
    last: int
    count: int
    left: int
    tasks: list[PeriodicTask] = field(default_factory=list)
    unfit: list[tuple[str, str]] = field(default_factory=list)
    more: bool = False

    @classmethod
    def of(cls, request: HttpRequest, queryset: Tasks) -> Progress:
        """The progress that a page has sent, or that of a beginning."""
        after, last, count, left = (_number(request, name) for name in ("after", "last", "count", "left"))
        last = last or queryset.order_by().aggregate(last=Max("pk"))["last"] or 0
        return cls(after, last, count, left)


def _number(request: HttpRequest, name: str) -> int:
    text = request.POST.get(f"onebeat_{name}", "") if request is not None else ""
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def perform(model_admin: TaskAdmin, request: HttpRequest, queryset: Tasks, act: Act, given: Given) -> Progress:
    """Do it to the next portion of the tasks, one by one, so that one that cannot be treated so stops no other."""
    progress, using, by = Progress.of(request, queryset), queryset.db, getattr(request, "user", None)
    rest = queryset.order_by("pk").filter(pk__gt=progress.after, pk__lte=progress.last)
    until = clock.monotonic() + BUDGET_SECONDS
    portion = list(rest[: PORTION + 1])
    for task in portion[:PORTION]:
        if clock.monotonic() > until:
            break
        key, name = task.pk, task.name

        def once(task: PeriodicTask = task) -> PeriodicTask:
            with transactions.short_transaction(using):
                done = act.do(task, given, by, using)
                line = f"{done.line}. {given['why']}" if given["why"] else f"{done.line}."
                if by is not None:
                    (model_admin.log_addition if act.adds else model_admin.log_change)(request, done.task, line)
                return done.task

        try:
            progress.tasks.append(transactions.retrying(using, once, limit_seconds=RETRY_SECONDS))
        except (Unfit, ValidationError, ValueError, LookupError) as error:
            progress.unfit.append((name, _text(error)))
        except DatabaseError as error:
            if not transactions.retryable(error):
                raise
            progress.unfit.append((name, gettext("the database was busy, try again")))
        progress.after = key
    progress.more = bool(portion) and portion[-1].pk > progress.after
    return progress


def _text(error: Exception) -> str:
    return "; ".join(error.messages) if isinstance(error, ValidationError) else str(error)


class OwnTransactions(TaskAdmin):
    """The list and its actions run outside the transaction that ATOMIC_REQUESTS opens: after a deadlock in it nothing
    could be tried again, nor be said.
    """

    def get_urls(self) -> list[URLPattern]:
        """Django's pages."""
        urls = super().get_urls()
        for url in urls:
            if (url.name or "").endswith("_changelist"):
                for alias in connections:
                    transaction.non_atomic_requests(using=alias)(url.callback)
        return urls


class TaskActions(OwnTransactions, OurAdmin):
    """The actions of the list, and the page of each for a single task."""

    actions = list(ACTS)

    def act_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """The page that asks, for one task. It acts on nothing: its form goes to the list."""
        found = ACTS.get(name)
        task = self.get_object(request, object_id) if found else None
        if found is None or task is None:
            raise Http404
        if not self._allowed(request, found):
            raise PermissionDenied
        return _ask(self, request, found, found.form(), [task], 1, single=task.pk)

    def object_tools(self, request: HttpRequest, object_id: str) -> list[Tool]:
        """What this person can do with this task as it is now."""
        task = self.get_object(request, object_id)
        if task is None:
            return []
        options = options_of(task)
        paused = options is not None and options.paused
        fits = {"enable": not task.enabled, "disable": task.enabled, "resume": paused, "pause": not paused}
        acts = [act for act in ACTS.values() if fits.get(act.name, True) and self._allowed(request, act)]
        return [Tool(str(act.title), url_of(self, "act", task.pk, act.name)) for act in acts]

    def _allowed(self, request: HttpRequest, act: Act) -> bool:
        return self.has_add_permission(request) if act.adds else self.has_change_permission(request)


def _action(act: Act) -> Action:
    @admin.action(permissions=[act.permission], description=format_lazy("{} …", act.title))
    def run(model_admin: TaskAdmin, request: HttpRequest, queryset: Tasks) -> HttpResponse:
        return ask_and_act(model_admin, request, queryset, act)

    return run


for each in ACTS.values():
    setattr(TaskActions, each.name, _action(each))


def ask_and_act(model_admin: TaskAdmin, request: HttpRequest, queryset: Tasks, act: Act) -> HttpResponse:
    """Ask, and when the answer is there, act. Django has checked the permission."""
    form = act.form(request.POST) if request.POST.get("post") else act.form()
    if not form.is_bound or not form.is_valid():
        shown = list(queryset.order_by("pk")[:_NAMED])  # not in the order of the list, which sorts all of them
        return _ask(model_admin, request, act, form, shown, queryset.order_by()[: _COUNTED + 1].count())
    progress = perform(model_admin, request, queryset, act, form.cleaned_data)
    say_unfit(request, progress)
    if progress.more:
        return go_on(model_admin, request, act, progress)
    count = progress.count + len(progress.tasks)
    if count:
        text = ngettext("%(action)s: %(count)s task.", "%(action)s: %(count)s tasks.", count)
        messages.success(request, text % {"action": act.title, "count": count})
    single = request.POST.get("onebeat_one")
    if act.adds and count == 1:
        single = str(progress.tasks[0].pk) if progress.tasks else None
    if single and progress.tasks:
        return HttpResponseRedirect(url_of(model_admin, "change", single))
    return HttpResponseRedirect(request.get_full_path())


def say_unfit(request: HttpRequest, progress: Progress) -> None:
    """Say which tasks were left as they were, and why; of many, how many."""
    for name, why in progress.unfit[: max(0, _NAMED - progress.left)]:
        messages.warning(request, gettext("%(name)s was left as it is: %(why)s.") % {"name": name, "why": why})
    left = progress.left + len(progress.unfit)
    if left > _NAMED and not progress.more:
        messages.warning(request, gettext("And %(count)s others.") % {"count": left - _NAMED})


def _page(model_admin: TaskAdmin, request: HttpRequest, act: Act, **context: object) -> HttpResponse:
    site = model_admin.admin_site
    shared = {
        **site.each_context(request),
        "title": act.title,
        "opts": model_admin.opts,
        "media": model_admin.media,
        "onebeat_alarm": alarm(),
        "act": act,
        "button": act.button or act.title,
        "list_url": url_of(model_admin, "changelist"),
    }
    return render(request, "onebeat/act.html", {**shared, **context})


def _ask(
    model_admin: TaskAdmin,
    request: HttpRequest,
    act: Act,
    form: Form,
    tasks: list[PeriodicTask],
    count: int,
    single: int | None = None,
) -> HttpResponse:
    if single is None:
        kept = _kept(request, form.fields)
    else:
        kept = [(helpers.ACTION_CHECKBOX_NAME, str(single)), ("onebeat_one", str(single))]
    known = {"action": act.name, "index": "0", "post": "yes"}
    return _page(
        model_admin, request, act,
        media=model_admin.media + form.media,
        form=form,
        tasks=tasks,
        more=max(0, count - len(tasks)),
        beyond=count > _COUNTED,
        hidden=[pair for pair in kept if pair[0] not in known] + list(known.items()),
        action=request.get_full_path() if single is None else url_of(model_admin, "changelist"),
        cancel=url_of(model_admin, "change", single) if single is not None else url_of(model_admin, "changelist"),
    )  # fmt: skip


def go_on(model_admin: TaskAdmin, request: HttpRequest, act: Act, progress: Progress) -> HttpResponse:
    """The page that says how far it came. Our script sends its form at once; without it, there is a button."""
    count, left = progress.count + len(progress.tasks), progress.left + len(progress.unfit)
    state = {"after": progress.after, "last": progress.last, "count": count, "left": left}
    known = {f"onebeat_{name}": str(value) for name, value in state.items()}
    text = ngettext("%(count)s task so far.", "%(count)s tasks so far.", count) % {"count": count}
    return _page(
        model_admin, request, act,
        so_far=text,
        hidden=[pair for pair in _kept(request) if pair[0] not in known] + list(known.items()),
        action=request.get_full_path(),
        cancel=url_of(model_admin, "changelist"),
    )  # fmt: skip


def _kept(request: HttpRequest, without: Iterable[str] = ()) -> list[tuple[str, str]]:
    """What a page has sent and the next one sends again, but for the parts of these fields."""
    dropped = ("csrfmiddlewaretoken", *without)
    pairs = [(name, value) for name, values in request.POST.lists() for value in values]
    return [pair for pair in pairs if not any(pair[0] == name or pair[0].startswith(f"{name}_") for name in dropped)]
