"""What a fleet of `tests.engine.fleet` did, for the history checker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from tests.engine.fleet import SECOND, Fleet
from tests.proof.checker import check
from tests.proof.history import Arrival, Fault, Finding, History, Kind, Reign, Row, Terms, Trouble

#: A machine may be busy: how late something came is not judged here, and a trouble may take so long to show.
_SLACK = timedelta(seconds=10)


def judged(
    fleet: Fleet,
    began: datetime,
    faults: Iterable[tuple[str, datetime, datetime]],
    *,
    once: Sequence[str] = (),
    every: Sequence[str] = (),
    disabled: tuple[datetime, datetime] | None = None,
) -> list[Finding]:
    """What the checker finds. `faults`: kind, begin and end of each, by the database's clock; they were everybody's.

    `once`: one-offs made after `began`. `every`: tasks due every second, disabled between the instants of `disabled`.
    """
    ended = fleet.now()
    tasks = {name: [reign] for name, reign in _one_offs(fleet, began, set(once))}
    for name in every:
        assert disabled is not None
        reign = _each_second(fleet, name, began, ended)
        off = Reign(reign.times, *disabled, enabled=False)
        tasks[name] = [reign, off]
    given = {
        "batch": fleet.settings.get("batch_size", 500),
        "lease": timedelta(seconds=fleet.settings.get("lease_seconds", 30)),
    }
    history = History(
        tasks,
        began,
        ended,
        [row for row in _rows(fleet) if row.task in tasks],
        [_arrival(one.headers) for one in fleet.collect() if one.headers["periodic_task_name"] in tasks],
        [Fault(Trouble(kind), first, last) for kind, first, last in faults],
        schedulers=[str(number) for number in range(fleet.place.schedulers)],
        terms=Terms(**given, slack=_SLACK),
    )
    return [one for one in check(history) if one.kind != Kind.LATE]


def _one_offs(fleet: Fleet, began: datetime, names: set[str]) -> Iterable[tuple[str, Reign]]:
    from onebeat.db.utc_columns import from_column

    rows = fleet.query(
        "SELECT t.name, c.clocked_time FROM django_celery_beat_periodictask t"
        " JOIN django_celery_beat_clockedschedule c ON c.id = t.clocked_id"
    )
    for name, column in rows:
        instant = from_column(column)
        if name in names and instant is not None:
            yield name, Reign((instant,), began, began, one_off=True, named=True)


def _each_second(fleet: Fleet, name: str, began: datetime, ended: datetime) -> Reign:
    from onebeat.db.utc_columns import from_column

    (found,) = fleet.query(
        "SELECT s.anchor FROM onebeat_taskstate s JOIN django_celery_beat_periodictask t ON t.id = s.task_id"
        f" WHERE t.name = '{name}'"
    )
    anchor = from_column(found[0])
    assert anchor is not None and anchor >= began, "the grid begins when the task was made"
    count = int((ended - anchor) / SECOND) + 60
    return Reign(tuple(anchor + n * SECOND for n in range(1, count)), anchor, anchor)


def _rows(fleet: Fleet) -> Iterable[Row]:
    from onebeat.db.utc_columns import from_column

    more = {
        key: (from_column(into), from_column(decided), claims, beat)
        for key, into, decided, claims, beat in fleet.query(
            "SELECT id, into_at, decided_at, claims, beat_id FROM onebeat_occurrence"
        )
    }
    for row in fleet.ledger():
        into, decided, claims, beat = more[row.id]
        yield Row(
            row.task, row.due_at, row.state, row.reason, row.last_due_at, into, row.message_id, decided, row.sent_at,
            max(claims, 0 if beat is None else 1),
        )  # fmt: skip


def _arrival(headers: dict[str, str]) -> Arrival:
    return Arrival(headers["periodic_task_name"], datetime.fromisoformat(headers["onebeat_due_at"]), headers["id"])
