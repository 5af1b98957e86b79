"""Whether a task runs, and if not, why: one word and one sentence for the list and the form."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Case, Exists, IntegerField, OuterRef, Q, QuerySet, When
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from onebeat.admin.listing import beside
from onebeat.admin.words import shown, zone_name
from onebeat.models import PeriodicTask, TaskOptions, TaskState


class Status(NamedTuple):
    """`key` is one of `CHOICES`."""

    key: str
    word: str
    why: str


CHOICES = [
    ("on", _("on")),
    ("paused", _("paused")),
    ("finished", _("finished")),
    ("off", _("off")),
    ("quarantined", _("quarantined")),
]


def status(task: PeriodicTask, now: datetime) -> Status:
    """The status of a task read with its state and options."""
    state, options = beside(task, "onebeat_state"), beside(task, "onebeat_options")
    words = dict(CHOICES)

    def of(key: str, why: str = "") -> Status:
        return Status(key, str(words[key]), why)

    if state is not None and state.quarantine:
        return of("quarantined", state.quarantine)
    if not task.enabled:
        return of("finished") if task.one_off and task.total_run_count else of("off")
    if state is not None and state.due_at is None and state.enabled:
        return of("finished", gettext("Nothing is to come."))
    if options is not None and options.paused and (options.paused_until is None or options.paused_until > now):
        return of("paused", _pause(options))
    return of("on") if state is not None else of("on", gettext("No scheduler has seen it yet."))


def _pause(options: Any) -> str:
    parts = []
    if options.paused_until is not None:
        parts.append(gettext("until %(time)s") % {"time": f"{shown(options.paused_until)} {zone_name()}"})
    if options.paused_why:
        parts.append(options.paused_why)
    if options.paused_by:
        parts.append(gettext("by %(who)s") % {"who": options.paused_by})
    return ", ".join(parts)


def _state(**wanted: Any) -> Exists:
    return Exists(TaskState.objects.filter(pk=OuterRef("pk"), **wanted))


def _paused(now: Any) -> Exists:
    until = Q(paused_until=None) | Q(paused_until__gt=now)
    return Exists(TaskOptions.objects.filter(until, pk=OuterRef("pk"), paused=True))


# Never "not among those keys": where they are too many for its memory, PostgreSQL goes through them for each row.
_QUARANTINED = _state(quarantine__gt="")
_ENDED = _state(due_at=None, enabled=True)
#: A one-off that has run.
_DONE = Q(one_off=True, total_run_count__gt=0)


def having(rows: QuerySet[PeriodicTask], key: str, now: datetime) -> QuerySet[PeriodicTask]:
    """Those of the rows that `status` gives this key. What is rare has an index of its own, so no table but the tasks'
    is read to its end.
    """
    if key == "quarantined":
        return rows.filter(_QUARANTINED)
    rows = rows.filter(~_QUARANTINED)
    if key == "off":
        return rows.filter(enabled=False).exclude(_DONE)
    if key == "finished":
        return rows.filter(Q(_DONE, enabled=False) | Q(_ENDED, enabled=True))
    return rows.filter(~_ENDED, _paused(now) if key == "paused" else ~_paused(now), enabled=True)


#: So many tasks of a rare status are brought to the front.
_RANKED = 10_000


def rank(using: str, now: datetime) -> Case:
    """To sort by: what needs a person first. The rare ones are looked up by themselves and compared by key: a look at
    other tables for each of a million tasks would take seconds.
    """

    def some(condition: Exists) -> list[int]:
        rows = PeriodicTask._base_manager.using(using).filter(condition).order_by()
        return list(rows.values_list("pk", flat=True)[:_RANKED])

    return Case(
        When(pk__in=some(_QUARANTINED), then=0),
        When(Q(_DONE, enabled=False), then=3),
        When(enabled=False, then=2),
        When(pk__in=some(_ENDED), then=3),
        When(pk__in=some(_paused(now)), then=1),
        default=4,
        output_field=IntegerField(),
    )
