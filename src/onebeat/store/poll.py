"""What there is to do, in one statement: most ticks have nothing to do, and this is all that they ask."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connections

from onebeat.db import database_clock, expressions, utc_columns
from onebeat.models import Change, ClaimedBatch
from onebeat.store import task_states


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The database at one instant, by its clock."""

    now: datetime
    #: Somebody has said that something changed.
    changes: bool
    #: An occurrence waits that nobody holds: a run that was asked for, one given back, or one to be tried again now.
    waiting: bool
    #: The earliest wake time that was looked for.
    wake_at: datetime | None

    @property
    def due(self) -> bool:
        """Whether a task's turn has come. Another scheduler may be about to claim it."""
        return self.wake_at is not None and self.wake_at <= self.now


def snapshot(using: str, floor: datetime | None) -> Snapshot:
    """Take the snapshot. `floor`: at wake times from here on, as for `task_states.lock_due`."""
    clock, params = database_clock.clock_sql(using)
    change, batch = (expressions.quoted(using, model._meta.db_table) for model in (Change, ClaimedBatch))
    lower = "IS NOT NULL" if floor is None else ">= %s"
    # The clock in a query of its own: compared with itself at every row, it would keep the index from being used.
    sql = (
        f"SELECT {clock}, EXISTS (SELECT 1 FROM {change}), EXISTS (SELECT 1 FROM {batch}"
        f" WHERE holder IS NULL AND lease_until <= (SELECT {clock})),"
        f" (SELECT wake_at FROM {expressions.quoted(using, task_states.TABLE)} WHERE wake_at {lower}"
        " ORDER BY wake_at LIMIT 1)"
    )
    bound = [] if floor is None else utc_columns.to_columns(using, [floor])
    with connections[using].cursor() as cursor:
        cursor.execute(sql, [*params, *params, *bound])
        now, changes, waiting, wake_at = cursor.fetchone()
    at = utc_columns.from_column(now)
    assert at is not None
    return Snapshot(at, bool(changes), bool(waiting), utc_columns.from_column(wake_at))
