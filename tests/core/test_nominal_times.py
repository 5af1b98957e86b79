"""From a recurrence to the times of a task."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebeat.core import nominal_times
from onebeat.core.recurrence import Clocked, Cron, Interval, Recurrence, Solar
from tests.core.recurrence.test_cron_laws import ORDINARY, crons
from tests.core.walking import at

MICROSECOND = timedelta(microseconds=1)
#: The hash is part of the promise: another version of the program may not move what is planned already.
JITTER_OF_REPORT = timedelta(microseconds=166410364)


class Counted:
    """A recurrence that counts how often it is asked."""

    def __init__(self, rule: Recurrence) -> None:
        self.rule, self.asked = rule, 0

    def after(self, instant: datetime) -> datetime | None:
        self.asked += 1
        return self.rule.after(instant)


@given(crons(), ORDINARY, ORDINARY)
def test_first_is_later_than_the_reference_and_not_before_the_start(
    cron: Cron, reference: datetime, start: datetime
) -> None:
    found = nominal_times.first(cron, reference, start_time=start)
    assert found == cron.after(max(reference, start - MICROSECOND))
    if found is not None:
        assert nominal_times.first(cron, reference, start_time=found) == found
        assert nominal_times.first(cron, found, start_time=found) == cron.after(found)
        assert nominal_times.first(cron, reference, start_time=start, expires=found) == found
        assert nominal_times.first(cron, reference, start_time=start, expires=found - MICROSECOND) is None


def test_following_ends_with_expires() -> None:
    rule = Cron.parse("0 * * * *")
    assert nominal_times.following(rule, at("2026-01-01T01:00"), expires=at("2026-01-01T02:00")) == at(
        "2026-01-01T02:00"
    )
    assert nominal_times.following(rule, at("2026-01-01T01:00"), expires=at("2026-01-01T01:59")) is None


@given(crons(), ORDINARY, st.timedeltas(timedelta(0), timedelta(days=4000)))
@settings(max_examples=60)
def test_newest_is_the_last_one_and_found_with_few_questions(cron: Cron, start: datetime, span: timedelta) -> None:
    due = cron.after(start)
    if due is None:
        return
    counted = Counted(cron)
    newest, following = nominal_times.newest(counted, due, due + span)
    assert counted.asked < 200
    assert due <= newest <= due + span
    assert newest == due or cron.after(newest - MICROSECOND) == newest
    assert cron.after(newest) == following
    assert following is None or following > due + span


@pytest.mark.parametrize(
    ("rule", "due", "now", "newest"),
    [
        (Cron.parse("* * * * *"), "2016-01-01T00:00", "2026-01-01T00:00:30", "2026-01-01T00:00"),
        (Cron.parse("* * 1 1 *"), "2016-01-01T00:00", "2025-12-01", "2025-01-01T23:59"),
        (Cron.parse("0 0 29 2 1"), "2044-02-29T00:00", "2071-01-01", "2044-02-29T00:00"),
        (Interval.of(100, "microseconds", at("2016-01-01")), "2016-01-01", "2026-01-01T00:00:00.00015",
         "2026-01-01T00:00:00.0001"),
        (Clocked(at("2016-01-01")), "2016-01-01", "2026-01-01", "2016-01-01"),
    ],
)  # fmt: skip
def test_newest(rule: Recurrence, due: str, now: str, newest: str) -> None:
    assert nominal_times.newest(rule, at(due), at(now)) == (at(newest), rule.after(at(now)))
    assert nominal_times.newest(rule, at(due), at(due)) == (at(due), rule.after(at(due)))


def test_newest_over_a_polar_night() -> None:
    pytest.importorskip("ephem")
    sunrise = Solar("sunrise", 78.2, 15.6)
    due = sunrise.after(at("2025-03-01"))
    assert due is not None
    newest, following = nominal_times.newest(sunrise, due, at("2026-01-10"))
    assert newest.year == 2025
    assert sunrise.after(newest) == following
    assert following is not None
    assert following > at("2026-01-10")


def test_newest_needs_a_time_that_has_come() -> None:
    with pytest.raises(ValueError, match="later than now"):
        nominal_times.newest(Cron(), at("2026-01-01"), at("2025-01-01"))


@given(
    st.text(), ORDINARY, st.timedeltas(timedelta(0), timedelta(days=2)), st.timedeltas(timedelta(0), timedelta(days=2))
)
def test_jitter_stays_in_its_window_and_before_the_next_run(
    key: str, due: datetime, window: timedelta, gap: timedelta
) -> None:
    found = nominal_times.jitter(key, due, window, due + gap)
    assert found == timedelta(0) or timedelta(0) <= found < min(window, gap)
    assert found == nominal_times.jitter(key, due, window, due + gap)


def test_jitter_spreads_and_never_changes() -> None:
    due = at("2026-01-01")
    minutes = [
        nominal_times.jitter(f"task {n}", due, timedelta(minutes=10), None) // timedelta(minutes=1) for n in range(2000)
    ]
    assert all(150 < minutes.count(minute) < 250 for minute in range(10))
    assert nominal_times.jitter("report", due, timedelta(minutes=10), None) == JITTER_OF_REPORT
