"""Tasks by what became of their last run, and by how late it was.

Asked of each task on its own, by the unique key of the ledger: exact, and quick for as many tasks as `EXACT`. Where
there are more, only those are asked that are in the newest of the ledger.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Case, FloatField, Func, IntegerField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from onebeat.db import expressions
from onebeat.models import Occurrence, PeriodicTask
from onebeat.queries import ledger_lists

State = Occurrence.State
#: Up to this many tasks the answer is exact.
EXACT = 20_000
#: Where there are more: those of so many newest occurrences, and of so many newest failures.
NEWEST = 20_000
#: For the order: what needs a person comes first. A task that never ran comes last.
ORDER = [State.FAILED, State.STARTED, State.CLAIMED, State.SENT, State.SUCCEEDED]
SKIPPED = "skipped"


class _Late(Func):
    """How many seconds after its nominal time an occurrence was sent; none if it was not."""

    output_field = FloatField()

    def __init__(self) -> None:
        super().__init__("due_at", "sent_at")

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **extra: Any) -> tuple[str, tuple[Any, ...]]:
        first, last = (compiler.compile(one)[0] for one in self.get_source_expressions())
        return expressions.seconds_between(connection.alias, first, last), ()


def _last(*, skipped: bool = False) -> QuerySet[Occurrence]:
    """The newest occurrence of a task: of those that left, or of all."""
    own: QuerySet[Occurrence] = Occurrence.objects.filter(task_id=OuterRef("pk")).order_by("-due_at", "-run")
    return own if skipped else own.exclude(state=State.SKIPPED)


class OutcomeRank(Coalesce):
    """To sort tasks by: the outcome of the last run, as in `ORDER`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        ranks = [When(state=state, then=Value(rank)) for rank, state in enumerate(ORDER)]
        rank = Case(*ranks, default=Value(len(ORDER)), output_field=IntegerField())
        super().__init__(*(args or (Subquery(_last().values(rank=rank)[:1]), Value(len(ORDER) + 1))), **kwargs)


def whole(using: str) -> bool:
    """Whether all tasks are asked."""
    rows = PeriodicTask._base_manager.using(using).order_by()
    return int(rows[: EXACT + 1].count()) <= EXACT


def narrowed(rows: QuerySet[PeriodicTask], state: str = "") -> QuerySet[PeriodicTask]:
    """Those of the tasks that are asked; `state`: for which outcome, since the newest failures are found apart."""
    if whole(rows.db):
        return rows
    ledger = Occurrence.objects.using(rows.db)
    some = ledger_lists.in_state(ledger, state) if state in (State.FAILED, State.CLAIMED, State.SKIPPED) else ledger
    oldest = some.order_by("-pk").values_list("pk", flat=True)[NEWEST : NEWEST + 1]
    after = next(iter(oldest), 0)
    return rows.filter(pk__in=some.filter(pk__gt=after).order_by().values("task_id"))


def having(rows: QuerySet[PeriodicTask], state: str) -> QuerySet[PeriodicTask]:
    """Tasks whose last run is in this state; `skipped`: whose newest nominal time was skipped."""
    last = _last(skipped=state == SKIPPED).values("state")[:1]
    return narrowed(rows, state).alias(onebeat_last=Subquery(last)).filter(onebeat_last=state)


def late(rows: QuerySet[PeriodicTask], seconds: int) -> QuerySet[PeriodicTask]:
    """Tasks whose last run left later than this after its nominal time."""
    last = _last().filter(sent_at__isnull=False).values(late=_Late())[:1]
    return narrowed(rows).alias(onebeat_late=Subquery(last)).filter(onebeat_late__gte=seconds)


def never(rows: QuerySet[PeriodicTask]) -> QuerySet[PeriodicTask]:
    """Tasks that have not run yet."""
    return rows.filter(Q(last_run_at=None), total_run_count=0)
