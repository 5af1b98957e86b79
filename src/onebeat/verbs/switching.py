"""Enable and disable tasks, and make a copy of one."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from onebeat.core.message_request import check_name
from onebeat.db import bulk_rows, database_clock, transactions
from onebeat.errors import InvalidArgument, KeyTaken
from onebeat.models import PeriodicTask, TaskOptions
from onebeat.models.instants import from_utc
from onebeat.queries import task_lookup
from onebeat.verbs import records
from onebeat.verbs.base import One, Tag, do, task_of, tasks_of, who_is


def enable(which: One | Tag, *, why: str = "", by: object = None, using: str | None = None) -> int:
    """Enable a task (by its name or its object), or all with a tag. Its runs begin with the first match from now on.

    Returns how many were disabled before; only those are recorded. Raises `UnknownTask`, and `InvalidArgument` for
    `ALL`: tasks that ran once are disabled too. `resume(ALL)` ends a pause of everything.
    """
    return _switch(which, True, why, by, using)


def disable(which: One | Tag, *, why: str = "", by: object = None, using: str | None = None) -> int:
    """Disable a task (by its name or its object), or all with a tag: nothing of it runs until it is enabled again.

    Returns how many were enabled before; only those are recorded. Raises `UnknownTask`, and `InvalidArgument` for
    `ALL`: `pause(ALL)` stops everything, and can be undone.
    """
    return _switch(which, False, why, by, using)


def duplicate(one: One, name: str, *, by: object = None, using: str | None = None) -> PeriodicTask:
    """Copy a task under another name: the same schedule, arguments and policies. The copy is disabled and not paused.

    Returns the copy. Raises `UnknownTask`, `KeyTaken` if a task has the name already, and `InvalidArgument` for a name
    that no task can have.
    """
    check_name("name", name)

    def work(alias: str) -> PeriodicTask:
        now, (source, source_name) = database_clock.now(alias), task_of(alias, one)
        copy = task_lookup.tasks(alias).filter(pk=source).first()
        if copy is None:
            raise task_lookup.unknown(alias, source_name)
        copy.pk, copy._state.adding = None, True
        copy.enabled, copy.last_run_at, copy.total_run_count = False, None, 0
        taken = task_lookup.find(alias, name)
        copy.name = taken[1] if taken else task_lookup.free_name(alias, name)
        try:
            with transaction.atomic(using=alias):
                copy.save(using=alias, force_insert=True)
        except IntegrityError:
            rows = task_lookup.tasks(alias).filter(name=copy.name)
            if transactions.snapshot_may_hide_rows(alias):
                rows = rows.select_for_update()
            winner = rows.first()
            if winner is None:
                raise
            raise KeyTaken(name, "waiting" if winner.enabled else "disabled") from None
        options = TaskOptions.objects.using(alias).filter(pk=source).first()
        if options is not None:
            options.pk, options.task, options._state.adding = copy.pk, copy, True
            options.paused, options.paused_until, options.paused_why, options.paused_by = False, None, "", ""
            options.origin = options.link = ""
            options.save(using=alias, force_insert=True)
        records.record(alias, "duplicate", {copy.pk: name}, who_is(by), "", f"copied from {source_name}", now)
        return copy

    return do(using, work)


def _switch(which: One | Tag, enabled: bool, why: str, by: object, using: str | None) -> int:
    if not isinstance(which, One | Tag):
        raise InvalidArgument(f"which: a task's name or object, or a Tag is needed, not {which!r}")

    def work(alias: str) -> int:
        now, of = database_clock.now(alias), tasks_of(alias, which)
        done: task_lookup.Named = {}
        for part in bulk_rows.portions(of):
            # Of two callers at once, the second waits here and finds nothing left to change.
            rows = task_lookup.tasks(alias).select_for_update().filter(pk__in=part, enabled=not enabled).order_by("pk")
            found = dict(rows.values_list("pk", "name"))
            changed = PeriodicTask.objects.using(alias).filter(pk__in=list(found))
            changed.update(enabled=enabled, date_changed=from_utc(now))
            done |= found
        if done:
            records.record(alias, "enable" if enabled else "disable", done, who_is(by), why, "", now)
        return len(done)

    return do(using, work)
