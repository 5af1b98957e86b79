"""The ledger's side of what workers tell: attempts start once, and states only go forward."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest

from onebeat.celery import message_attempt
from onebeat.core import clock
from onebeat.dispatch.base import Accepted, Message
from onebeat.dispatch.base import PublishResult as Answer
from onebeat.models import Occurrence
from onebeat.store import attempts
from onebeat.store.attempts import Attempt, Outcome, Run, StartVerdict
from tests.engine.kit import Bench, at, every, ledger, task
from tests.processes import processes
from tests.scratch import Scratch

STARTED, COPY, PRUNED = StartVerdict.STARTED, StartVerdict.COPY, StartVerdict.PRUNED
SECOND = timedelta(seconds=1)


def occurrence(**values: Any) -> Occurrence:
    made = {"task_id": 1, "task_name": "t", "due_at": at(0), "state": "sent", "decided_at": at(0), "sent_at": at(0)}
    return Occurrence.objects.create(celery_task_id=uuid.uuid4(), **{**made, **values})


def attempt(row: Occurrence, number: int = 0) -> Attempt:
    return Attempt(row.task_uid, row.due_at, row.run, number)


def begin(row: Occurrence, number: int, token: int, again: float | None = None) -> StartVerdict:
    after = None if again is None else timedelta(seconds=again)
    return attempts.begin("default", attempt(row, number), token, "w@h", again_after=after).verdict


def end(row: Occurrence, number: int, token: int | None, outcome: str, error: str = "") -> bool:
    """The word that an attempt ended, as a recorder writes it. Returns whether it changed anything."""
    return write(row, Run(attempt(row, number), "other@h", token=token, end=(0.0, Outcome(outcome), error)))


def write(row: Occurrence, *runs: Run) -> bool:
    before = Occurrence.objects.values().get(pk=row.pk)
    assert attempts.write("default", runs) == []
    return Occurrence.objects.values().get(pk=row.pk) != before


def told(row: Occurrence) -> tuple[Any, ...]:
    row.refresh_from_db()
    return str(row.state), row.attempt, row.outcome, row.duplicate_deliveries


#: Steps, each with what it answers, and what the row says in the end. A step: the attempt, the token of the execution
#: (None: told from outside), and its end, or "" for its start.
STORIES: dict[str, tuple[list[tuple[int, int | None, str, Any]], tuple[Any, ...]]] = {
    "one run": ([(0, 7, "", STARTED), (0, 7, "success", True)], ("succeeded", 0, "success", 0)),
    "a copy while it runs": (
        [(0, 7, "", STARTED), (0, 8, "", COPY), (0, 7, "success", True)],
        ("succeeded", 0, "success", 1),
    ),
    "a copy afterwards": (
        [(0, 7, "", STARTED), (0, 7, "failure", True), (0, 8, "", COPY)],
        ("failed", 0, "failure", 1),
    ),
    "the reply to the start was lost": ([(0, 7, "", STARTED), (0, 7, "", STARTED)], ("started", 0, "", 0)),
    "a retry waits": ([(0, 7, "", STARTED), (0, 7, "retry", True)], ("started", 0, "retry", 0)),
    "a retry starts before the first attempt has told its end": (
        [(0, 7, "", STARTED), (1, 8, "", STARTED), (0, 7, "retry", False), (1, 8, "success", True)],
        ("succeeded", 1, "success", 0),
    ),
    "a copy of an earlier attempt": (
        [(0, 7, "", STARTED), (0, 7, "retry", True), (1, 8, "", STARTED), (0, 9, "", COPY), (1, 9, "", COPY)],
        ("started", 1, "", 2),
    ),
    "given back to the broker": (
        [(1, 7, "", STARTED), (1, 7, "requeued", True), (0, 9, "", COPY), (1, 8, "", STARTED)],
        ("started", 1, "", 1),
    ),
    "given back before any retry": (
        [(0, 7, "", STARTED), (0, 7, "requeued", True), (0, 8, "", STARTED), (0, 7, "requeued", False)],
        ("started", 0, "", 0),
    ),
    "its process died": ([(0, 7, "", STARTED), (0, None, "lost", True)], ("failed", 0, "lost", 0)),
    "its process died before it could tell": ([(0, None, "lost", True)], ("failed", 0, "lost", 0)),
    "a hard limit told twice": (
        [(0, 7, "", STARTED), (0, None, "timeout", True), (0, None, "timeout", False)],
        ("failed", 0, "timeout", 0),
    ),
    "revoked before it ran": ([(0, None, "revoked", True), (0, 7, "", COPY)], ("failed", 0, "revoked", 1)),
    "a copy is revoked": ([(0, 7, "", STARTED), (0, None, "revoked", False)], ("started", 0, "", 0)),
    "a copy expires before a retry": (
        [(0, 7, "", STARTED), (0, 7, "retry", True), (0, None, "expired", False)],
        ("started", 0, "retry", 0),
    ),
    "a retry expires": (
        [(0, 7, "", STARTED), (0, 7, "retry", True), (1, None, "expired", True)],
        ("failed", 1, "expired", 0),
    ),
    "the start could not be recorded": ([(0, None, "success", True)], ("succeeded", 0, "success", 0)),
    "success is told after a loss": (
        [(0, 7, "", STARTED), (0, None, "lost", True), (0, 7, "success", True)],
        ("succeeded", 0, "success", 0),
    ),
    "a loss is told after success": (
        [(0, 7, "", STARTED), (0, 7, "success", True), (0, None, "lost", False)],
        ("succeeded", 0, "success", 0),
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_states_go_forward(bench: Bench, name: str) -> None:
    steps, expected = STORIES[name]
    row = occurrence()
    for number, token, ending, answer in steps:
        if not ending:
            assert begin(row, number, token or 0) == answer
        else:
            assert end(row, number, token, ending) == answer
    assert told(row) == expected


def test_times_and_duration(bench: Bench) -> None:
    row = occurrence(sent_at=None, state="claimed", claim_token=5)
    clock.move(at(10))
    begin(row, 0, 7)
    row.refresh_from_db()
    assert (row.started_at, row.finished_at, row.duration, row.worker) == (at(10), None, None, "w@h")
    assert row.sent_at == at(10)
    clock.move(at(12.5))
    end(row, 0, 7, "success")
    row.refresh_from_db()
    assert (row.finished_at, row.duration, row.sent_at) == (at(12.5), timedelta(seconds=2.5), at(10))


def test_an_attempt_may_start_again_after_a_time(bench: Bench) -> None:
    row = occurrence()
    clock.move(at(0))
    assert begin(row, 0, 7, again=10) == STARTED
    clock.move(at(4))
    early = attempts.begin("default", attempt(row), 8, "w", again_after=10 * SECOND)
    assert (early.verdict, early.wait) == (COPY, 6 * SECOND)
    clock.move(at(10))
    assert begin(row, 0, 8, again=10) == STARTED
    assert begin(row, 0, 9, again=10) == COPY  # the second start has its own time
    assert end(row, 0, 7, "failure") is False  # the first is not it any more
    assert end(row, 0, 8, "success")
    clock.move(at(100))
    assert begin(row, 0, 9, again=10) == COPY
    assert told(row) == ("succeeded", 0, "success", 2)


@pytest.mark.parametrize("died_at", ["", "published"])
def test_a_worker_quicker_than_the_record(bench: Bench, died_at: str) -> None:
    """It starts what the broker has while the scheduler is still about to record that; or never comes to it."""
    one = task(interval=every(10), one_off=True)

    def start(message: Message) -> Answer:
        found = message_attempt.of({"id": message.id, **message.options["headers"]})
        assert found is not None
        attempts.begin("default", found, 7, "w@h")
        return Accepted()

    bench.outbox.answer = start
    clock.move(at(9))
    bench.tick()
    clock.move(at(10))
    if died_at:
        bench.die_at(died_at)
    else:
        bench.tick()
    assert ledger(one) == [(10, "started", "")]
    other = Bench(bench.outbox)
    clock.move(at(100))
    other.tick()
    assert (ledger(one), len(bench.sent)) == ([(10, "started", "")], 1)
    assert Occurrence.objects.get().sent_at == at(10)
    other.engine.close()


def test_one_that_was_skipped_and_ran_all_the_same(bench: Bench) -> None:
    """Its scheduler was lost after the broker had it; the next decided not to send it."""
    row = occurrence(state="skipped", reason="disabled", sent_at=None)
    assert end(row, 0, None, "expired") is False
    assert begin(row, 0, 7) == STARTED
    row.refresh_from_db()
    assert (row.state, row.reason, row.detail) == ("started", "", "ran although it was skipped: disabled")


def test_a_row_that_is_not_the_one_the_message_speaks_of(bench: Bench) -> None:
    """Pruned; or its key was given away again by a database that was restored."""
    row = occurrence()
    for other in (
        Attempt(row.task_uid + 1, row.due_at, 0, 0),
        Attempt(row.task_uid, row.due_at + SECOND, 0, 0),
        Attempt(row.task_uid, row.due_at, 1, 0),
    ):
        assert attempts.begin("default", other, 7, "w").verdict == PRUNED
        assert write(row, Run(other, "w", end=(0.0, Outcome.SUCCESS, ""))) is False
    assert told(row) == ("sent", None, "", 0)


@pytest.mark.parametrize(
    ("error", "kept"),
    [("a\0b", "ab"), ("half \ud83d", "half \\ud83d"), ("x" * 600, "x" * 500), ("ä" * 600, "ä" * 500)],
)
def test_any_text_of_an_error_is_kept_as_far_as_it_goes(bench: Bench, error: str, kept: str) -> None:
    row = occurrence()
    assert attempts.begin("default", attempt(row), 7, "w" * 300).verdict == STARTED
    assert end(row, 0, 7, "failure", error)
    row.refresh_from_db()
    assert (row.error, row.worker) == (kept, "w" * 255)


HEADERS = {"onebeat_task": 5, "onebeat_due_at": at(0).isoformat(), "onebeat_run": 2, "id": "a", "root_id": "a"}


@pytest.mark.parametrize(
    ("changed", "number"),
    [
        ({}, 0),
        ({"retries": 3}, 3),
        ({"root_id": None}, 0),
        ({"onebeat_task": "5"}, 0),
        ({"onebeat_task": None}, None),
        ({"onebeat_task": "five"}, None),
        ({"onebeat_task": [5]}, None),
        ({"onebeat_task": 2**63}, None),
        ({"onebeat_run": 2**31}, None),
        ({"onebeat_due_at": None}, None),
        ({"onebeat_due_at": "today"}, None),
        ({"onebeat_due_at": "2026-03-10T10:00:00"}, None),
        ({"root_id": "of another"}, None),
        ({"replaced_task_nesting": 1}, None),
        ({"is_eager": True}, None),
    ],
)
def test_which_messages_are_of_an_occurrence(changed: dict[str, Any], number: int | None) -> None:
    expected = None if number is None else Attempt(5, at(0), 2, number)
    assert message_attempt.of({**HEADERS, **changed}) == expected


def start_one(index: int, key: int) -> str:
    row = Occurrence.objects.get(pk=key)
    return str(begin(row, 0, index + 1))


def make_one() -> int:
    return int(occurrence().pk)


@pytest.mark.concurrency
def test_many_copies_at_the_same_moment(database: Scratch) -> None:
    from tests.processes import run_python

    key = run_python(database.env, make_one)
    found = processes(8, database.env, start_one, key)
    assert [one.error for one in found] == [""] * 8
    assert sorted(one.value for one in found) == ["copy"] * 7 + ["started"]
