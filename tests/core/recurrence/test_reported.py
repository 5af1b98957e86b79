"""Failures that people met elsewhere, those that are about time alone. The numbers are those of the list of cases."""

from __future__ import annotations

from datetime import timedelta

import pytest

from onebeat.core import nominal_times
from onebeat.core.recurrence import Cron, Interval, InvalidSchedule, Solar, canonical_field
from tests.core.walking import at, runs


@pytest.mark.parametrize(
    ("rule", "zone", "after", "expected"),
    [
        pytest.param(
            "0 * * * *", "US/Pacific", "2026-11-01T08:00Z",
            ["2026-11-01T09:00:00Z", "2026-11-01T10:00:00Z", "2026-11-01T11:00:00Z"], id="1-hourly-in-autumn",
        ),
        pytest.param(
            "30 1 * * *", "America/New_York", "2026-10-31T05:30Z",
            ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"], id="2-once-in-the-repeated-hour",
        ),
        pytest.param(
            "30 2 * * *", "America/New_York", "2026-03-07T07:30Z",
            ["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"], id="3-once-in-the-gap",
        ),
        pytest.param(
            "50 3 * * *", "Pacific/Chatham", "2026-09-26T03:50+12:45", ["2026-09-26T14:05:00Z"], id="4-chatham",
        ),
        pytest.param("0 0 29 2 *", "UTC", "2096-03-01", ["2104-02-29T00:00:00Z"], id="14-leap-day-over-2100"),
        pytest.param(
            "0 22 1-7 * 6", "UTC", "2026-03-01",
            ["2026-03-07T22:00:00Z", "2026-04-04T22:00:00Z", "2026-05-02T22:00:00Z", "2026-06-06T22:00:00Z"],
            id="15-first-saturday",
        ),
        pytest.param(
            "0 6 L * *", "UTC", "2026-01-31T07:00Z",
            ["2026-02-28T06:00:00Z", "2026-03-31T06:00:00Z", "2026-04-30T06:00:00Z", "2026-05-31T06:00:00Z"],
            id="19-last-day",
        ),
        pytest.param(
            "0 6 * * fri#L", "UTC", "2026-01-01", ["2026-01-30T06:00:00Z", "2026-02-27T06:00:00Z"], id="last-friday",
        ),
        pytest.param(
            "0 6 * * mon#2", "UTC", "2026-01-01", ["2026-01-12T06:00:00Z", "2026-02-09T06:00:00Z"], id="second-monday",
        ),
    ],
)  # fmt: skip
def test_crontabs(rule: str, zone: str, after: str, expected: list[str]) -> None:
    assert runs(Cron.parse(rule, zone), after, len(expected)) == expected


def test_5_created_after_the_match_it_is_not_due() -> None:
    first = nominal_times.first(Cron.parse("0 15 * * *"), at("2026-03-02T13:59"), start_time=at("2026-03-02T13:58"))
    assert first == at("2026-03-02T15:00")


def test_6_and_7_start_time_is_inclusive() -> None:
    rule, now = Cron.parse("36 5 28 5 *"), at("2026-05-28T05:34")
    assert nominal_times.first(rule, now, start_time=at("2026-05-28T05:36:00")) == at("2026-05-28T05:36")
    assert nominal_times.first(rule, now, start_time=at("2026-05-28T05:36:53.747")) == at("2027-05-28T05:36")


def test_8_the_first_match_at_start_time() -> None:
    assert nominal_times.first(
        Cron.parse("0 * * * *"), at("2026-01-01T11:30"), start_time=at("2026-01-01T12:00")
    ) == at("2026-01-01T12:00")


def test_9_an_edit_plans_from_the_edit() -> None:
    assert nominal_times.first(Cron.parse("0 16 * * *"), at("2023-10-03T12:20")) == at("2023-10-03T16:00")


def test_11_a_week_from_the_anchor_whatever_happens_between() -> None:
    weekly = Interval.of(7, "days", at("2023-03-01"))
    for day in range(1, 8):
        assert nominal_times.first(weekly, at(f"2023-03-0{day}T09:00")) == at("2023-03-08")


def test_12_the_grid_stands() -> None:
    hourly = Interval.of(1, "hours", at("2026-01-01T10:30"))
    assert nominal_times.first(hourly, at("2026-01-01T10:00"), start_time=at("2026-01-01T10:30")) == at(
        "2026-01-01T10:30"
    )
    assert runs(hourly, "2026-01-01T11:47", 2) == ["2026-01-01T12:30:00Z", "2026-01-01T13:30:00Z"]


@pytest.mark.parametrize("rule", ["0 0 31 2 *", "0 0 31 4,6,9,11 *"])
def test_13_never(rule: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        Cron.parse(rule)
    assert caught.value.field == "day_of_month"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("7", "0"), ("5-7", "5-0"), ("0-7", "*"), ("sunday", "0"), ("6-1", "6-1"), ("fri-mon", "5-1")],
)
def test_16_and_17_sundays(text: str, canonical: str) -> None:
    assert canonical_field("day_of_week", text) == canonical


def test_18_a_list_is_kept() -> None:
    assert Cron(day_of_week=[1, 2, 3]).day_of_week == "1,2,3"


def test_20_sunrise_after_the_polar_day() -> None:
    pytest.importorskip("ephem")
    sunrise = Solar("sunrise", 69.6492, 18.9553).after(at("2026-06-01"))
    assert sunrise is not None
    assert abs(sunrise - at("2026-07-26T00:00")) < timedelta(days=1)


def test_26_a_second_and_a_half_is_kept() -> None:
    assert runs(Interval(timedelta(seconds=1.5), at("2026-01-01")), "2026-01-01", 2) == [
        "2026-01-01T00:00:01.500000Z",
        "2026-01-01T00:00:03Z",
    ]


def test_35_started_inside_the_repeated_hour() -> None:
    assert runs(Cron.parse("*/15 * * * *", "Europe/London"), "2026-10-25T00:50Z", 5) == [
        "2026-10-25T01:00:00Z",
        "2026-10-25T01:15:00Z",
        "2026-10-25T01:30:00Z",
        "2026-10-25T01:45:00Z",
        "2026-10-25T02:00:00Z",
    ]
