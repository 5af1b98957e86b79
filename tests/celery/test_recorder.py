"""The recorder by itself, on a real database: batches, bounds, outages, forks."""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from onebeat.celery import recorder as module
from onebeat.celery.recorder import Recorder
from onebeat.core import clock
from onebeat.core.attempts import Attempt, Outcome
from onebeat.models import Occurrence
from onebeat.store import attempts
from onebeat.store.attempts import Run
from tests.engine.kit import at
from tests.processes import eventually, run_python
from tests.scratch import Scratch

pytestmark = pytest.mark.django_db(transaction=True)
LIMIT = 30.0


@pytest.fixture
def recorder(transactional_db: None) -> Iterator[Recorder]:
    made = Recorder()
    yield made
    made.close(0.0)


def occurrences(number: int) -> list[Occurrence]:
    made = [
        Occurrence(
            task_id=1, task_name="t", due_at=at(second), state="sent", celery_task_id=uuid.uuid4(), decided_at=at(0)
        )
        for second in range(number)
    ]
    return Occurrence.objects.bulk_create(made)


def run(row: Occurrence, **values: Any) -> Run:
    attempt = Attempt(row.task_uid, row.due_at, row.run, 0)  # type: ignore[arg-type]
    return Run(attempt, "w@h", **{"token": row.pk + 1, "began": clock.monotonic(), **values})


def ends(recorder: Recorder, one: Run, outcome: Outcome = Outcome.SUCCESS) -> None:
    one.end = clock.monotonic(), outcome, ""
    recorder.put(one)


def states() -> dict[str, int]:
    found: dict[str, int] = {}
    for state in Occurrence.objects.values_list("state", flat=True):
        found[state] = found.get(state, 0) + 1
    return found


class Writes:
    """Stands before `attempts.write`: counts, and fails as long as it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.error: Exception | None = None
        self._write = attempts.write
        monkeypatch.setattr(attempts, "write", self)

    def __call__(self, using: str, runs: list[Run], **more: Any) -> list[Run]:
        if self.error is not None:
            raise self.error
        self.sizes.append(len(runs))
        return self._write(using, runs, **more)


def test_many_short_runs_are_one_change(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the thread, without anybody asking for it; each with the times at which things happened."""
    writes = Writes(monkeypatch)
    rows = occurrences(300)
    with transaction.atomic():  # what the body does in its transaction is no concern of the record
        for row in rows:
            one = run(row)
            recorder.put(one)
            ends(recorder, one)
    eventually(lambda: sum(writes.sizes) >= 300, LIMIT, "the record")
    assert recorder.flush()
    assert states() == {"succeeded": 300}
    assert sum(writes.sizes) == 300
    assert len(writes.sizes) <= 3, "one change for each flush"
    for row in Occurrence.objects.all():
        assert row.started_at <= row.finished_at  # type: ignore[operator]
        assert (row.attempt, row.worker, row.outcome, row.duplicate_deliveries) == (0, "w@h", "success", 0)


def test_a_long_run_shows_as_started_and_ends_once(recorder: Recorder) -> None:
    (row,) = occurrences(1)
    one = run(row, began=clock.monotonic() - 5)
    recorder.put(one)
    eventually(lambda: states() == {"started": 1}, LIMIT, "the start")
    ends(recorder, one)
    eventually(lambda: states() == {"succeeded": 1}, LIMIT, "the end")
    row.refresh_from_db()
    assert row.duration is not None and 5 <= row.duration.total_seconds() < 5 + LIMIT


def test_an_outage_drops_the_oldest_and_counts_them(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_MOST", 5)
    monkeypatch.setattr(module, "_PAUSE", 0.01)
    writes = Writes(monkeypatch)
    writes.error = OperationalError("gone")
    rows = occurrences(25)
    for row in rows[:20]:
        one = run(row)
        recorder.put(one)
        ends(recorder, one)
    for row in rows[20:]:
        ends(recorder, run(row, decides=True))
    eventually(lambda: "cannot be recorded" in caplog.text, LIMIT, "the warning")
    assert recorder.dropped == 15
    writes.error = None
    eventually(lambda: "recorded again; 15 were dropped" in caplog.text, LIMIT, "the record")
    assert list(Occurrence.objects.order_by("due_at").values_list("state", flat=True)) == (
        ["sent"] * 15 + ["succeeded"] * 10
    )


def test_an_end_that_decides_waits_for_room(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never dropped: where too many wait, the task waits, and its message is not acknowledged."""
    monkeypatch.setattr(module, "_MOST", 3)
    monkeypatch.setattr(module, "_PAUSE", 0.01)
    writes = Writes(monkeypatch)
    writes.error = OperationalError("gone")
    rows = occurrences(4)
    for row in rows[:3]:
        ends(recorder, run(row, decides=True))
    eventually(lambda: recorder._failing and len(recorder._deciding) == 3, LIMIT, "a first try")
    last = threading.Thread(target=ends, args=(recorder, run(rows[3], decides=True)))
    last.start()
    last.join(0.3)
    # What the main process tells is no body's, and holds nothing up.
    ends(recorder, run(rows[3], decides=True, token=None, began=None), Outcome.LOST)
    writes.error = None
    last.join(LIMIT)
    assert not last.is_alive()
    eventually(lambda: states() == {"succeeded": 4}, LIMIT, "all of them")
    assert recorder.dropped == 0


def test_a_run_that_the_database_refuses_stops_no_other(recorder: Recorder, caplog: pytest.LogCaptureFixture) -> None:
    rows = occurrences(7)
    for place, row in enumerate(rows):
        ends(recorder, run(row, **({"token": 2**70} if place == 3 else {})))
    recorder.flush()
    assert states() == {"succeeded": 6, "sent": 1}
    assert "cannot be written" in caplog.text


def test_a_row_that_somebody_holds_is_written_later(recorder: Recorder) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite locks its file as a whole")
    rows = occurrences(2)
    with transaction.atomic():
        Occurrence.objects.select_for_update().get(pk=rows[0].pk)
        for row in rows:
            ends(recorder, run(row))
        assert not recorder.flush()
        assert states() == {"sent": 1, "succeeded": 1}
    eventually(lambda: states() == {"succeeded": 2}, LIMIT, "the other one")


def test_a_pruned_occurrence_is_passed_over(recorder: Recorder) -> None:
    rows = occurrences(2)
    rows[0].delete()
    rows[0].pk = 99
    for row in rows:
        ends(recorder, run(row))
    assert recorder.flush()
    assert states() == {"succeeded": 1}


def test_what_cannot_be_written_at_the_end_is_said(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Writes(monkeypatch).error = OperationalError("gone")
    (row,) = occurrences(1)
    ends(recorder, run(row))
    with caplog.at_level(logging.ERROR):
        recorder.close(0.0)
    assert "1 runs end without a record" in caplog.text


def fork_while_it_is_open() -> list[str]:
    """Parent and child record over connections of their own; neither closes the other's."""
    from onebeat.celery.recorder import recorder

    rows = occurrences(3)
    ends(recorder(), run(rows[0]))
    recorder().flush()
    parents = recorder()
    child = os.fork()
    if not child:
        status = 1
        try:
            mine = recorder()
            ends(mine, run(rows[1]))
            mine.close()
            status = 0 if mine is not parents else 2
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    ends(recorder(), run(rows[2]))
    before = parents.connection._link.connection
    recorder().flush()
    assert parents.connection._link.connection is before, "the parent's connection was lost"
    assert ended == 0
    return sorted(Occurrence.objects.values_list("state", flat=True))


def test_a_fork_has_a_connection_of_its_own(database: Scratch) -> None:
    assert run_python(database.env, fork_while_it_is_open) == ["succeeded"] * 3
