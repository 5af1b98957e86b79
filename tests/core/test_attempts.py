"""Words of workers that come in another order than things happened: the instants decide."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from onebeat.core.attempts import End, Outcome, Record, StartVerdict, end, start

BEGIN = datetime(2026, 3, 10, 10, tzinfo=UTC)
NOW = timedelta(0)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


SENT = Record("sent", sent_at=at(0))


def begun(record: Record, number: int, token: int, seconds: float) -> Record:
    """The start of a task that is not guarded, written at any later time."""
    return start(record, number, token, "w@h", at(seconds), again_after=NOW)[0]


def over(record: Record, number: int, token: int | None, seconds: float, outcome: str) -> Record:
    return end(record, number, token, End(at(seconds), Outcome(outcome)), "main@h")


def test_a_loss_that_is_written_before_the_start_keeps_its_last_word() -> None:
    """The child's own word of the start was on its way when its process died."""
    record = begun(over(SENT, 0, None, 5, "lost"), 0, 7, 4)
    assert (record.state, record.outcome, record.started_at, record.duplicate_deliveries) == (
        "failed",
        "lost",
        at(4),
        0,
    )
    assert over(record, 0, 7, 4.9, "success").state == "succeeded"


def test_the_word_of_a_retried_attempt_that_comes_after_its_retry_changes_nothing() -> None:
    record = over(begun(SENT, 1, 8, 6), 1, 8, 7, "success")
    assert over(begun(record, 0, 7, 4), 0, 7, 5, "retry") == record


def test_a_copy_of_an_earlier_attempt_is_counted_all_the_same() -> None:
    record = begun(SENT, 1, 8, 6)
    assert begun(record, 0, 9, 7) == replace(record, duplicate_deliveries=1)


def test_a_loss_ends_no_attempt_that_started_after_it() -> None:
    record = begun(SENT, 0, 8, 6)
    assert over(record, 0, None, 5, "lost") == record
    assert over(record, 0, None, 6.5, "lost").outcome == "lost"


def test_the_newest_start_of_an_attempt_counts_in_whatever_order_they_are_written() -> None:
    first, second = begun(SENT, 0, 7, 4), begun(SENT, 0, 8, 6)
    assert begun(first, 0, 8, 6) == replace(second, duplicate_deliveries=1)
    assert begun(second, 0, 7, 4) == replace(second, duplicate_deliveries=1)


def test_success_of_either_start_is_success() -> None:
    record = begun(begun(SENT, 0, 7, 4), 0, 8, 6)
    assert over(record, 0, 7, 7, "failure") == record
    record = over(record, 0, 7, 5, "success")
    assert (record.state, record.finished_at) == ("succeeded", at(6))  # never before its start
    assert over(record, 0, 8, 9, "failure") == record


@pytest.mark.parametrize("guarded", [True, False])
def test_what_is_given_back_may_start_again(guarded: bool) -> None:
    record = over(begun(SENT, 1, 7, 4), 1, 7, 5, "requeued")
    assert (record.state, record.attempt, record.start_token) == ("started", 0, None)
    again, answer = start(record, 1, 8, "w@h", at(6), again_after=None if guarded else NOW)
    assert (again.attempt, again.duplicate_deliveries, answer.verdict) == (1, 0, StartVerdict.STARTED)


def test_a_skipped_one_that_runs_has_no_reason_any_more() -> None:
    record = begun(Record("skipped", reason="paused"), 0, 7, 4)
    assert (record.state, record.reason, record.detail) == ("started", "", "ran although it was skipped: paused")
    assert over(Record("skipped", reason="paused"), 0, None, 4, "expired").state == "skipped"
