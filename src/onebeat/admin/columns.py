"""The columns of the list of tasks. Each reads what the page has read already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from onebeat.admin import outcomes, status
from onebeat.admin.filters import ORIGINS
from onebeat.admin.listing import WAKE, beside, now_of
from onebeat.admin.words import schedule_raw, schedule_words, schedules_of, time_tag, two

if TYPE_CHECKING:
    from onebeat.models import PeriodicTask


class TaskColumns:
    """For `list_display`."""

    @admin.display(description=_("name"), ordering="name")
    def name_and_notes(self, task: PeriodicTask) -> SafeString:
        """The name, and below it who made the task, if that was no person here, and the notes for people."""
        options = beside(task, "onebeat_options")
        origin = ORIGINS.get(options.origin) if options is not None else None
        return two(task.name, ": ".join(str(one) for one in (origin, task.description) if one))

    @admin.display(description=_("Celery task"), ordering="task")
    def task_and_badge(self, task: PeriodicTask) -> SafeString:
        """The task's name, marked if neither this app nor a worker that ran it knows it."""
        ran = any(one.state in ("started", "succeeded", "failed") for one in getattr(task, "onebeat_recent", []))
        if ran or getattr(task, "onebeat_known", True):
            return format_html("<code>{}</code>", task.task)
        return format_html(
            '<code>{}</code> <span class="ob-badge ob-warn" title="{}">{}</span>',
            task.task,
            gettext("No task of this name is registered here, and no worker has reported a run of it."),
            gettext("unknown"),
        )

    @admin.display(description=_("schedule"))
    def schedule_in_words(self, task: PeriodicTask) -> SafeString:
        """The schedule in words, and the rule as it is written."""
        rows = schedules_of(task)
        if not rows:
            return format_html('<span class="ob-quiet">{}</span>', gettext("none"))
        return format_html_join(", ", "{}", ((two(schedule_words(row), schedule_raw(row), "code"),) for row in rows))

    @admin.display(description=_("next run"), ordering=WAKE)
    def next_run(self, task: PeriodicTask) -> Any:
        """The next nominal time."""
        state = beside(task, "onebeat_state")
        return None if state is None else _labelled(_("next run"), time_tag(state.due_at, now_of(task)))

    @admin.display(description=_("last runs"), ordering="last_run_at")
    def last_runs(self, task: PeriodicTask) -> SafeString:
        """When it ran last and what became of that, and its newest occurrences as a picture."""
        found = getattr(task, "onebeat_recent", [])
        newest = _labelled(_("last run"), outcomes.last(found, now_of(task)))
        return format_html("{}{}", newest or "", outcomes.marks(found))

    @admin.display(description=_("status"))
    def status_badge(self, task: PeriodicTask) -> SafeString:
        """On, paused, finished, off or set aside, and why."""
        found = status.status(task, now_of(task))
        badge = format_html('<span class="ob-badge ob-{}">{}</span>', found.key, found.word)
        return format_html('{}<div class="ob-quiet ob-why">{}</div>', badge, found.why) if found.why else badge


def _labelled(label: Any, cell: SafeString | None) -> SafeString | None:
    """A cell that says what it is where the narrow screen has no head of the table."""
    return None if cell is None else format_html('<span class="ob-label">{}: </span>{}', label, cell)
