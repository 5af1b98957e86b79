"""Elapsed time on a fixed grid."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onebeat.core.recurrence import UNITS, Interval, InvalidSchedule
from tests.core.walking import at, runs

INSTANTS = st.datetimes(timezones=st.just(UTC))
PERIODS = st.timedeltas(min_value=timedelta(microseconds=1), max_value=timedelta(days=400_000))


@given(PERIODS, INSTANTS, INSTANTS)
def test_the_laws_of_the_grid(period: timedelta, anchor: datetime, instant: datetime) -> None:
    rule = Interval(period, anchor)
    found = rule.after(instant)
    if found is None:
        assert datetime.max.replace(tzinfo=UTC) - instant < period
        return
    assert found > instant
    if instant < anchor:
        assert found == anchor
    else:
        assert (found - anchor) % period == timedelta(0)
        assert found - instant <= period
        assert rule.newest(instant) == found - period


@given(PERIODS, INSTANTS)
def test_the_newest_point(period: timedelta, anchor: datetime) -> None:
    rule = Interval(period, anchor)
    assert rule.newest(anchor) == anchor
    if anchor > datetime.min.replace(tzinfo=UTC):
        assert rule.newest(anchor - timedelta(microseconds=1)) is None


def test_no_drift_after_ten_million_steps() -> None:
    rule = Interval.of(100, "microseconds", at("2026-01-01"))
    instant = at("2026-01-01")
    for _ in range(1000):
        instant = rule.after(instant) or instant
    assert instant == at("2026-01-01T00:00:00.100000")
    third = Interval(timedelta(microseconds=333_333), at("2026-01-01"))
    far = at("2026-01-01") + 10_000_000 * timedelta(microseconds=333_333)
    assert third.after(far - timedelta(microseconds=1)) == far
    assert third.after(far) == far + timedelta(microseconds=333_333)


def test_an_hour_is_an_hour_on_the_day_of_a_clock_change() -> None:
    new_york = timezone(timedelta(hours=-4))
    rule = Interval.of(1, "hours", datetime(2026, 10, 31, 23, 30, tzinfo=new_york))
    assert runs(rule, "2026-11-01T05:00Z", 3) == [f"2026-11-01T0{hour}:30:00Z" for hour in (5, 6, 7)]


@pytest.mark.parametrize(
    ("every", "unit", "field"),
    [(0, "days", "every"), (-1, "days", "every"), (True, "days", "every"), (1.5, "days", "every"),
     (10**12, "days", "every"), (1, "weeks", "period"), (1, "", "period")],
)  # fmt: skip
def test_what_cannot_be(every: int, unit: str, field: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        Interval.of(every, unit, at("2026-01-01"))
    assert caught.value.field == field


def test_a_period_longer_than_zero_and_an_aware_anchor() -> None:
    with pytest.raises(InvalidSchedule, match=r"^every: "):
        Interval(timedelta(0), at("2026-01-01"))
    with pytest.raises(ValueError, match="aware"):
        Interval(timedelta(1), datetime(2026, 1, 1))  # noqa: DTZ001


def test_the_last_point_before_the_calendar_ends() -> None:
    assert Interval.of(1, "days", at("9999-12-30")).after(at("9999-12-31T12:00")) is None
    assert Interval.of(999_999_999, "days", at("2026-01-01")).after(at("2026-01-01")) is None


def test_equal_by_value() -> None:
    one = Interval.of(60, "minutes", at("2026-01-01T01:00+01:00"))
    assert one == Interval.of(1, "hours", at("2026-01-01"))
    assert pickle.loads(pickle.dumps(one)) == one
    assert len({one, Interval.of(1, "hours", at("2026-01-01"))}) == 1
    assert [Interval.of(1, unit, at("2026-01-01")).period for unit in UNITS] == sorted(
        (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1), timedelta(microseconds=1)),
        reverse=True,
    )
