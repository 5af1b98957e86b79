"""The columns of the list of tasks. Each reads what the page has read already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Case, IntegerField, When
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from onebeat.admin import outcomes, status
from onebeat.admin.filters import BY_HAND, ORIGINS
from onebeat.admin.listing import WAKE, Rank, beside, now_of
from onebeat.admin.words import labelled, schedule_raw, schedule_words, schedules_of, time_tag, two
from onebeat.db import database_clock
from onebeat.models.task_rules import SCHEDULES
from onebeat.queries.last_runs import OutcomeRank

if TYPE_CHECKING:
    from onebeat.models import PeriodicTask

#: To sort by: the kinds of schedule in their usual order, and the origins.
_KIND = Case(
    *(When(**{f"{kind}__isnull": False}, then=place) for place, kind in enumerate(SCHEDULES)),
    default=len(SCHEDULES),
    output_field=IntegerField(),
)
_ORIGIN = Case(
    *(When(onebeat_options__origin=name, then=place) for place, name in enumerate(ORIGINS)),
    default=len(ORIGINS),
    output_field=IntegerField(),
)


class TaskColumns:
    """For `list_display`."""

    def ranked(self, using: str) -> Case:
        """The order of the statuses, on this database, now."""
        return status.rank(using, database_clock.now(using))

    @admin.display(description=_("name"), ordering="name")
    def name_and_notes(self, task: PeriodicTask) -> SafeString:
        """The name, and below it the notes for people."""
        return two(task.name, task.description)

    @admin.display(description=_("origin"), ordering=_ORIGIN)
    def origin(self, task: PeriodicTask) -> SafeString:
        """Who made the task, and what people have set otherwise than its code says."""
        options = beside(task, "onebeat_options")
        word = ORIGINS.get(options.origin, BY_HAND) if options is not None else BY_HAND
        fields = ", ".join(getattr(task, "onebeat_overrides", []))
        changed = gettext("changed here: %(fields)s") % {"fields": fields} if fields else ""
        return labelled(_("origin"), two(str(word), changed))

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

    @admin.display(description=_("schedule"), ordering=_KIND)
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
        found = None if state is None else time_tag(state.due_at, now_of(task))
        return labelled(_("next run"), found or _quiet(gettext("none")))

    @admin.display(description=_("last run"), ordering="last_run_at")
    def last_run(self, task: PeriodicTask) -> SafeString:
        """The nominal time of its newest occurrence that left, or failing that was decided about."""
        one = outcomes.last(getattr(task, "onebeat_recent", []))
        found = None if one is None else time_tag(one.due_at, now_of(task))
        return labelled(_("last run"), found or _quiet(gettext("never")))

    @admin.display(description=_("last outcome"), ordering=OutcomeRank())
    def last_outcome(self, task: PeriodicTask) -> SafeString:
        """What became of that, how late it was, and its newest occurrences as a picture."""
        found = getattr(task, "onebeat_recent", [])
        words = outcomes.in_words(found)
        return outcomes.marks(found) if words is None else format_html("{}{}", words, outcomes.marks(found))

    @admin.display(description=_("status"), ordering=Rank(0))
    def status_badge(self, task: PeriodicTask) -> SafeString:
        """On, paused, finished, off or quarantined, and why."""
        found = status.status(task, now_of(task))
        badge = format_html('<span class="ob-badge ob-{}">{}</span>', found.key, found.word)
        return format_html('{}<div class="ob-quiet ob-why">{}</div>', badge, found.why) if found.why else badge


def _quiet(text: str) -> SafeString:
    return format_html('<span class="ob-quiet">{}</span>', text)
