"""The sweep: finds what changed past the ORM, by comparing tasks with the definitions they were planned from.

In slices by primary key, so that a million tasks cost a little in each poll and nothing in any tick.
"""

from __future__ import annotations

from django.db import connections
from django.db.models import Exists, OuterRef, QuerySet

from onebeat.core import clock
from onebeat.db import database_clock, expressions, transactions
from onebeat.models import (
    CeleryReading,
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
    TaskOptions,
)
from onebeat.store import plans, run_counts, task_states
from onebeat.store.definitions import AS_CELERY

#: The share of one core that it may take.
_SHARE = 0.1

_CRON = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone")


class Sweep:
    """One scheduler's way through all tasks, `size` at a time; 0 stands still. It does not begin again before `rest`
    seconds have passed since it began.
    """

    def __init__(self, using: str, size: int, rest: float = _SHARE) -> None:
        self.using = using
        self.size = size
        self._after = 0
        self._planned = False
        self._rest = rest
        self._next = self._began = clock.monotonic()

    def step(self, budget_seconds: float = _SHARE) -> bool:
        """Look at the next tasks, if it is time: one slice, and more as long as `budget_seconds` last, for at most a
        tenth of the time since the step before. Returns whether one was planned.
        """
        begin = clock.monotonic()
        if not self.size or begin < self._next:
            return False
        self._planned = False
        budget = min(_SHARE, budget_seconds)
        while self._slice() and clock.monotonic() - begin < budget:
            pass
        self._next = begin + (clock.monotonic() - begin) / _SHARE
        if self._after == 0:  # a few tasks are not looked at again at once
            self._next = max(self._next, self._began + self._rest)
            self._began = self._next
        return self._planned

    def _slice(self) -> bool:
        """Bring one slice up to date. Returns whether more tasks follow; at the end it begins again."""
        upper = self._upper()
        changed = self._changed(upper)
        if changed:
            self._planned = True
            with transactions.short_transaction(self.using):
                now = database_clock.now(self.using)
                plans.plan(self.using, changed, now)
        self._after = upper or 0
        if upper is None:
            run_counts.finish(self.using, self.size)
            self._drop_orphans()
        return upper is not None

    def _drop_orphans(self) -> None:
        """Options of tasks that were deleted past the ORM: a new task with their key must not inherit them."""
        tasks = PeriodicTask._base_manager.using(self.using).filter(pk=OuterRef("pk"))
        rows: QuerySet[TaskOptions] = QuerySet(TaskOptions, using=self.using)
        # In pieces: many may have gone at once.
        orphans = list(rows.filter(~Exists(tasks)).order_by("pk").values_list("pk", flat=True)[: self.size])
        if orphans:
            rows.filter(~Exists(tasks), pk__in=orphans).delete()

    def _upper(self) -> int | None:
        """The last key of the next slice; None when the rest fits into one."""
        rows = PeriodicTask._base_manager.using(self.using).filter(pk__gt=self._after).order_by("pk")
        return rows.values_list("pk", flat=True)[self.size - 1 : self.size].first()

    def _changed(self, upper: int | None) -> list[int]:
        """Keys in the slice whose state is missing, planned from another definition, quarantined, or without a task."""
        using, q = self.using, connections[self.using].ops.quote_name
        task, state = q(PeriodicTask._meta.db_table), q(task_states.TABLE)
        bounds, params = "> %s", [self._after]
        if upper is not None:
            bounds, params = "BETWEEN %s AND %s", [self._after + 1, upper]
        joins = " ".join(
            f"LEFT JOIN {q(model._meta.db_table)} {alias} ON {alias}.id = p.{kind}_id"
            for alias, kind, model in (
                ("i", "interval", IntervalSchedule),
                ("c", "crontab", CrontabSchedule),
                ("o", "solar", SolarSchedule),
                ("k", "clocked", ClockedSchedule),
            )
        )
        joins += f" LEFT JOIN {q(CeleryReading._meta.db_table)} r ON r.crontab = p.crontab_id"
        pairs = [(f"p.{name}", f"s.{name}") for name in ("enabled", "one_off", "start_time", "expires")]
        pairs += [(f"p.{kind}_id", f"s.{q(kind)}") for kind in ("interval", "crontab", "solar", "clocked")]
        pairs.append((expressions.plain_text(using, "p.name"), expressions.plain_text(using, "s.task_name")))
        pairs += [("k.clocked_time", "s.clocked_time"), (self._rule(), expressions.plain_text(using, "s.rule"))]
        differs = " OR ".join(expressions.distinct(using, left, right) for left, right in pairs)
        sql = (
            f"SELECT p.id FROM {task} p LEFT JOIN {state} s ON s.task_id = p.id {joins} "
            f"WHERE p.id {bounds} AND (s.task_id IS NULL OR s.quarantine <> '' OR {differs}) "
            f"UNION ALL SELECT s.task_id FROM {state} s LEFT JOIN {task} p ON p.id = s.task_id "
            f"WHERE s.task_id {bounds} AND p.id IS NULL"
        )
        with connections[using].cursor() as cursor:
            cursor.execute(sql, [*params, *params])
            return [row[0] for row in cursor.fetchall()]

    def _rule(self) -> str:
        """SQL for `Definition.rule`."""
        using, q = self.using, connections[self.using].ops.quote_name
        cron: list[str] = []
        for name in _CRON:
            cron += [f"c.{q(name)}", "' '"]
        # What is no number at all, and compares as one beyond every number, cannot be rounded.
        micro = [
            f"CASE WHEN o.{name} BETWEEN -180 AND 180 "
            f"THEN {expressions.whole(using, f'o.{name} * 1000000')} ELSE '' END"
            for name in ("latitude", "longitude")
        ]
        crontab = expressions.concat(using, *cron[:-1])
        same = f"{expressions.plain_text(using, 'r.text')} = {expressions.plain_text(using, crontab)}"
        branches = {
            "crontab": expressions.concat(using, crontab, f"CASE WHEN {same} THEN '{AS_CELERY}' ELSE '' END"),
            "interval": expressions.concat(using, expressions.text(using, "i.every"), "' '", "i.period"),
            "solar": expressions.concat(using, "o.event", "' '", micro[0], "' '", micro[1]),
        }
        cases = " ".join(
            f"WHEN p.{kind}_id IS NOT NULL THEN {expressions.plain_text(using, value)}"
            for kind, value in branches.items()
        )
        return f"CASE {cases} ELSE '' END"
