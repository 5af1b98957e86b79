"""The columns of the list of tasks. Each reads what the page has read already."""

from __future__ import annotations

from django.contrib import admin
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from onebeat.admin import outcomes, status
from onebeat.admin.filters import BY_HAND, ORIGINS
from onebeat.admin.listing import WAKE, StatusOrder, beside, options_of, state_of
from onebeat.admin.words import labelled, quiet, schedule_raw, schedule_words, schedules_of, time_tag, two
from onebeat.models import PeriodicTask
from onebeat.queries.last_runs import OutcomeRank
from onebeat.queries.task_lists import KIND_ORDER, ORIGIN_ORDER


class TaskColumns:
    """The columns of the list of tasks."""

    @admin.display(description=_("name"), ordering="name")
    def name_and_notes(self, task: PeriodicTask) -> SafeString:
        """The name, and below it the notes for people."""
        return two(task.name, task.description)

    @admin.display(description=_("origin"), ordering=ORIGIN_ORDER)
    def origin(self, task: PeriodicTask) -> SafeString:
        """Who made the task, and what people have set otherwise than its code says."""
        options = options_of(task)
        word: str | Promise = ORIGINS.get(options.origin, BY_HAND) if options is not None else BY_HAND
        fields = ", ".join(beside(task).overrides)
        changed = gettext("changed here: %(fields)s") % {"fields": fields} if fields else ""
        return labelled(_("origin"), two(str(word), changed))

    @admin.display(description=_("Celery task"), ordering="task")
    def task_and_badge(self, task: PeriodicTask) -> SafeString:
        """The task's name, marked if neither this app nor a worker that ran it knows it."""
        found = beside(task)
        if found.known or any(each.state in ("started", "succeeded", "failed") for each in found.recent):
            return format_html("<code>{}</code>", task.task)
        return format_html(
            '<code>{}</code> <span class="ob-badge ob-warn" title="{}">{}</span>',
            task.task,
            gettext("No task of this name is registered here, and no worker has reported a run of it."),
            gettext("unknown"),
        )

    @admin.display(description=_("schedule"), ordering=KIND_ORDER)
    def schedule_in_words(self, task: PeriodicTask) -> SafeString:
        """The schedule in words, and the rule as it is written."""
        rows = schedules_of(task)
        if not rows:
            return quiet(gettext("none"))
        return format_html_join(", ", "{}", ((two(schedule_words(row), schedule_raw(row), "code"),) for row in rows))

    @admin.display(description=_("next run"), ordering=WAKE)
    def next_run(self, task: PeriodicTask) -> SafeString:
        """The next nominal time."""
        state = state_of(task)
        found = None if state is None else time_tag(state.due_at, beside(task).now)
        return labelled(_("next run"), found or quiet(gettext("none")))

    @admin.display(description=_("last run"), ordering="last_run_at")
    def last_run(self, task: PeriodicTask) -> SafeString:
        """The nominal time of its newest occurrence that left, or failing that was decided about."""
        found = beside(task)
        newest = outcomes.last(found.recent)
        tag = None if newest is None else time_tag(newest.due_at, found.now)
        return labelled(_("last run"), tag or quiet(gettext("never")))

    @admin.display(description=_("last outcome"), ordering=OutcomeRank())
    def last_outcome(self, task: PeriodicTask) -> SafeString:
        """The outcome of the last run, how late it was, and the newest occurrences as a picture."""
        recent = beside(task).recent
        return format_html("{}{}", outcomes.in_words(recent), outcomes.marks(recent))

    @admin.display(description=_("status"), ordering=StatusOrder())
    def status_badge(self, task: PeriodicTask) -> SafeString:
        """On, paused, finished, off or quarantined, and why."""
        found = status.status(task, beside(task).now)
        badge = format_html('<span class="ob-badge ob-{}">{}</span>', found.key, found.word)
        return format_html('{}<div class="ob-quiet ob-why">{}</div>', badge, found.why) if found.why else badge
