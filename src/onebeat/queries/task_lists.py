"""Tasks by status, origin, kind of schedule and next run: conditions and orders for lists of a million tasks.

What is rare has an index of its own, so no table but the tasks' is read to its end. Never "not among those keys": where
they are too many for its memory, PostgreSQL goes through them for each row.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import BooleanField, Case, Count, Exists, IntegerField, OuterRef, Q, QuerySet, When
from django.db.models.expressions import RawSQL

from onebeat.db import expressions
from onebeat.models import PeriodicTask, TaskOptions, TaskState
from onebeat.models.schedule_value import ScheduleValue
from onebeat.models.task_rules import SCHEDULES

Tasks = QuerySet[PeriodicTask]

#: What a search looks through: columns of the task, those of the second row only where they hold no secret.
NAMES, ARGUMENTS = ["name", "task"], ["args", "kwargs"]
#: The origins of tasks that neither people nor programs made by hand.
ORIGINS = ("code", "once")
#: At most so many tasks of each rare status are brought to the front.
RANKED = 10_000

#: To sort by: the kinds of schedule in their usual order.
KIND_ORDER = Case(
    *(When(**{f"{kind}__isnull": False}, then=place) for place, kind in enumerate(SCHEDULES)),
    default=len(SCHEDULES),
    output_field=IntegerField(),
)
#: To sort by: the origins in the order of `ORIGINS`, the others after them.
ORIGIN_ORDER = Case(
    *(When(onebeat_options__origin=name, then=place) for place, name in enumerate(ORIGINS)),
    default=len(ORIGINS),
    output_field=IntegerField(),
)

_QUARANTINED = Exists(TaskState.objects.filter(pk=OuterRef("pk"), quarantine__gt=""))
_ENDED = Exists(TaskState.objects.filter(pk=OuterRef("pk"), due_at=None, enabled=True))
#: A one-off that has run.
_DONE = Q(one_off=True, total_run_count__gt=0)


def _paused(now: datetime) -> Exists:
    until = Q(paused_until=None) | Q(paused_until__gt=now)
    return Exists(TaskOptions.objects.filter(until, pk=OuterRef("pk"), paused=True))


def by_status(rows: Tasks, key: str, now: datetime) -> Tasks:
    """The tasks whose status is `key`: quarantined, off, finished, paused or on."""
    if key == "quarantined":
        return rows.filter(_QUARANTINED)
    rows = rows.filter(~_QUARANTINED)
    if key == "off":
        return rows.filter(enabled=False).exclude(_DONE)
    if key == "finished":
        return rows.filter(Q(_DONE, enabled=False) | Q(_ENDED, enabled=True))
    return rows.filter(~_ENDED, _paused(now) if key == "paused" else ~_paused(now), enabled=True)


def status_order(using: str, now: datetime) -> Case:
    """To sort by: what needs a person first. The rare ones are looked up by themselves and compared by key: a look at
    other tables for each of a million tasks would take seconds.
    """

    def some(condition: Exists) -> list[int]:
        rows = PeriodicTask._base_manager.using(using).filter(condition).order_by()
        return list(rows.values_list("pk", flat=True)[:RANKED])

    return Case(
        When(pk__in=some(_QUARANTINED), then=0),
        When(Q(_DONE, enabled=False), then=3),
        When(enabled=False, then=2),
        When(pk__in=some(_ENDED), then=3),
        When(pk__in=some(_paused(now)), then=1),
        default=4,
        output_field=IntegerField(),
    )


def by_origin(rows: Tasks, origin: str) -> Tasks:
    """The tasks of one of `ORIGINS`; for any other word, those of none of them."""
    if origin in ORIGINS:
        return rows.filter(pk__in=TaskOptions.objects.filter(origin=origin).values("task_id"))
    return rows.filter(~Exists(TaskOptions.objects.filter(pk=OuterRef("pk"), origin__in=ORIGINS)))


def leaving_before(rows: Tasks, instant: datetime | None) -> Tasks:
    """The tasks whose next run leaves before an instant; with None, those without a next run."""
    waiting = TaskState.objects.filter(wake_at__isnull=False)
    if instant is None:
        return rows.filter(~Exists(waiting.filter(pk=OuterRef("pk"))))
    return rows.filter(pk__in=waiting.filter(wake_at__lt=instant).values("task_id"))


def with_text(rows: Tasks, text: str, secret_words: tuple[str, ...]) -> Tasks:
    """The tasks that have a text, in whatever case, in their names or arguments.

    Arguments in which a secret may stand, by one of the words that mark its key, are not looked through: whether they
    match would tell what they hold. Nor are those with an escaped letter, since a key could be written so.
    """

    def found(columns: list[str], words: str) -> RawSQL:
        sql, params = expressions.holds(rows.db, PeriodicTask._meta.db_table, columns, words)
        return RawSQL(sql, params, output_field=BooleanField())

    if not secret_words:
        return rows.filter(found([*NAMES, *ARGUMENTS], text))
    if not all(word.isascii() for word in secret_words):
        return rows.filter(found(NAMES, text))
    open_to_all = Q(found(ARGUMENTS, text))
    for word in ("\\u", *secret_words):
        open_to_all &= ~Q(found(ARGUMENTS, word))
    return rows.filter(Q(found(NAMES, text)) | open_to_all)


def users(using: str, kind: str, keys: list[object]) -> dict[object, int]:
    """How many tasks use each of these schedules of a kind, by key; those that none uses are left out."""
    rows = PeriodicTask._base_manager.using(using).filter(**{f"{kind}__in": keys})
    return dict(rows.order_by().values_list(kind).annotate(n=Count("pk")))


def sharing(using: str, schedule: ScheduleValue, task_id: int | None, limit: int) -> list[str]:
    """The names of up to `limit` other tasks on a schedule of this value, saved or not."""
    row = schedule if schedule.pk else schedule.twin(using)
    if row is None:
        return []
    rows = PeriodicTask._base_manager.using(using).filter(**{f"{row.KIND}_id": row.pk})
    rows = rows if task_id is None else rows.exclude(pk=task_id)
    return list(rows.order_by("name").values_list("name", flat=True)[:limit])
