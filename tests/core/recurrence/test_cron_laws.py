"""What holds for every rule, zone and instant."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onebeat.core.recurrence import Cron, InvalidSchedule
from tests.core.oracle import draw
from tests.core.recurrence.test_oracle import ZONES
from tests.core.walking import at, runs

MICROSECOND = timedelta(microseconds=1)
INSTANTS = st.datetimes(timezones=st.just(UTC))
ORDINARY = st.datetimes(datetime(1950, 1, 1), datetime(2400, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@st.composite
def crons(draw_from: st.DrawFn) -> Cron:
    rng = random.Random(draw_from(st.integers(0, 2**32)))
    near = datetime(2026, 1, 1) + timedelta(minutes=rng.randrange(525_600))  # noqa: DTZ001
    zone = draw_from(st.sampled_from([*ZONES, "UTC", "Africa/Monrovia"]))
    while True:
        try:
            return Cron(*draw(rng, near).texts, tz=zone)
        except InvalidSchedule:
            continue


@given(crons(), st.one_of(INSTANTS, ORDINARY), st.floats(0, 1))
def test_strictly_later_and_the_same_for_every_instant_between_two_runs(
    cron: Cron, instant: datetime, share: float
) -> None:
    first = cron.after(instant)
    if first is None:
        return
    assert first > instant
    assert first.tzinfo is UTC
    between = instant + (first - instant) * share
    if between < first:
        assert cron.after(between) == first
    assert cron.after(first - MICROSECOND) == first
    second = cron.after(first)
    assert second is None or second > first


@given(crons(), INSTANTS)
def test_the_zone_that_an_instant_is_written_in_does_not_matter(cron: Cron, instant: datetime) -> None:
    try:
        elsewhere = instant.astimezone(timezone(timedelta(hours=7)))
    except OverflowError:
        return
    assert cron.after(elsewhere) == cron.after(instant)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo", "Pacific/Kiritimati"])
def test_the_two_ends_of_the_calendar(zone: str) -> None:
    cron = Cron("0", "0", tz=zone)
    first = cron.after(datetime.min.replace(tzinfo=UTC))
    assert first is not None
    assert first - datetime.min.replace(tzinfo=UTC) <= timedelta(days=1)
    assert cron.after(datetime.max.replace(tzinfo=UTC)) is None
    assert cron.after(datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))) is None
    assert Cron("0", "0", "29", "2", "1", zone).after(at("9990-01-01")) is None


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        Cron().after(datetime(2026, 1, 1))  # noqa: DTZ001


def test_the_rarest_rule_across_2100() -> None:
    mondays = Cron.parse("0 0 29 2 mon")
    assert runs(mondays, "2072-03-01", 2) == ["2112-02-29T00:00:00Z", "2140-02-29T00:00:00Z"]
    assert runs(Cron.parse("0 0 29 2 *"), "2096-03-01", 1) == ["2104-02-29T00:00:00Z"]


def test_a_rule_whose_every_match_is_left_out_by_the_clock_ends_soon_with_none() -> None:
    """The second Sunday of March, 02:00 to 02:59 in New York, by a wildcard rule that follows the clock."""
    never = Cron.parse("*/30 2 8-14 3 0", "America/New_York")
    assert never.after(at("2026-01-01")) is None
    assert runs(never, "2000-01-01", 1) == ["2000-03-12T07:00:00Z"], "the rules of the zone were others then"


@pytest.mark.parametrize(
    ("zone", "rule", "asked", "instant"),
    [
        # Liberia's clocks moved on by 44 minutes and 30 seconds at midnight before 7 January 1972.
        ("Africa/Monrovia", "20 0 7 1 *", "1972-01-06T12:00Z", "1972-01-07T00:44:30Z"),
        ("Africa/Monrovia", "*/50 0 7 1 *", "1972-01-06T12:00Z", "1972-01-07T00:50:00Z"),
        # 00:44 was left out too, by half a minute.
        ("Africa/Monrovia", "*/44 0 7 1 *", "1972-01-06T12:00Z", "1973-01-07T00:00:00Z"),
        # Before 1883 New York kept the time of its own sun, 4 hours, 56 minutes and 2 seconds behind.
        ("America/New_York", "0 12 1 1 *", "1879-12-31T00:00Z", "1880-01-01T16:56:02Z"),
    ],
)
def test_offsets_with_seconds(zone: str, rule: str, asked: str, instant: str) -> None:
    assert runs(Cron.parse(rule, zone), asked, 1) == [instant]


def test_started_in_the_repeated_hour_each_run_comes_once() -> None:
    """The autumn storm: a scheduler that asks again at every wake-up inside the repeated hour gets each run once."""
    cron = Cron.parse("*/15 * * * *", "America/New_York")
    now, due, sent = at("2026-11-01T05:01"), cron.after(at("2026-11-01T05:01")), []
    while now < at("2026-11-01T08:00"):
        while due is not None and due <= now:
            sent.append(due)
            due = cron.after(due)
        now += timedelta(seconds=5)
    assert sent == [at("2026-11-01T05:15") + n * timedelta(minutes=15) for n in range(11)]


def test_the_next_match_may_lie_in_the_repeated_hour_of_another_year() -> None:
    """Asked in the second pass of one autumn, a wildcard rule starts the next autumn with its first pass."""
    cron = Cron.parse("*/30 1 1-7 11 0", "America/New_York")
    assert runs(cron, "2026-11-01T06:45Z", 4) == [
        "2027-11-07T05:00:00Z",
        "2027-11-07T05:30:00Z",
        "2027-11-07T06:00:00Z",
        "2027-11-07T06:30:00Z",
    ]
    assert runs(cron, "2026-11-01T05:30Z", 3)[:2] == ["2026-11-01T06:00:00Z", "2026-11-01T06:30:00Z"]
