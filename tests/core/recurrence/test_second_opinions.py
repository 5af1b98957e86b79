"""cronsim and crondst, two libraries with Debian cron's rule for clock changes, near clock changes.

They agree with the engine wherever the question is the same. The known differences each have a test of their own.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest

from onebeat.core.recurrence import Cron
from tests.core.oracle import changes
from tests.core.walking import at, runs

cronsim = pytest.importorskip("cronsim")
crondst = pytest.importorskip("crondst")

#: Without the zones of the differences below.
CRONSIM = ("Africa/Casablanca", "America/New_York", "Antarctica/Troll", "Europe/Dublin", "Europe/London")
#: crondst is asked in no zone where it loops for ever in autumn, which Chatham and Troll make it do.
CRONDST = (
    "Africa/Casablanca", "America/Havana", "America/New_York", "America/Sao_Paulo", "Asia/Tehran",
    "Australia/Lord_Howe", "Europe/Dublin", "Europe/London",
)  # fmt: skip
SPAN = timedelta(days=3)
Opinion = Callable[[str, str, datetime], list[datetime]]


def by_cronsim(rule: str, zone: str, after: datetime) -> list[datetime]:
    answers = (run.astimezone(UTC) for run in cronsim.CronSim(rule, after.astimezone(ZoneInfo(zone))))
    return list(takewhile(lambda run: run <= after + SPAN, answers))


def by_crondst(rule: str, zone: str, after: datetime) -> list[datetime]:
    answers = (run.astimezone(UTC) for run in crondst.CronDst(rule).iter(after.astimezone(ZoneInfo(zone))))
    return list(takewhile(lambda run: run <= after + SPAN, answers))


def by_engine(rule: str, zone: str, after: datetime) -> list[datetime]:
    cron, found = Cron.parse(rule, zone), []
    run = cron.after(after)
    while run is not None and run <= after + SPAN:
        found.append(run)
        run = cron.after(run)
    return found


def draw(rng: random.Random) -> str:
    minute = rng.choice(["*", "*/20", "*/30", str(rng.randrange(60)), f"{rng.randrange(30)},{rng.randrange(30, 60)}"])
    hour = rng.choice(["*", "*/2", str(rng.randrange(5)), f"{rng.randrange(3)}-{rng.randrange(3, 6)}", "22-23"])
    return f"{minute} {hour} * * {rng.choice(['*', '*', '0-3', '1,5,6'])}"


@pytest.mark.parametrize(("opinion", "zones"), [(by_cronsim, CRONSIM), (by_crondst, CRONDST)])
def test_random_rules_from_the_day_before_a_change(opinion: Opinion, zones: tuple[str, ...]) -> None:
    rng = random.Random(11)
    for _ in range(400):
        zone = rng.choice(zones)
        after = rng.choice([change for change in changes(zone) if change.year > 1990]) - timedelta(days=1, minutes=7)
        rule = draw(rng)
        assert opinion(rule, zone, after) == by_engine(rule, zone, after), (rule, zone, after)


def test_difference_two_day_fields_mean_or_to_them_and_and_to_celery() -> None:
    assert by_cronsim("0 4 13 * 5", "UTC", at("2026-02-12")) == [at("2026-02-13T04:00")]
    assert by_cronsim("0 4 14 * 5", "UTC", at("2026-02-12")) == [at("2026-02-13T04:00"), at("2026-02-14T04:00")]
    assert by_crondst("0 4 14 * 5", "UTC", at("2026-02-12")) == [at("2026-02-13T04:00"), at("2026-02-14T04:00")]
    assert by_engine("0 4 14 * 5", "UTC", at("2026-02-12")) == []


def test_difference_cronsim_asked_in_the_second_pass_of_a_repeated_hour_goes_back_to_the_first() -> None:
    second_pass = at("2025-11-02T06:10")
    assert by_cronsim("30 1 * * *", "America/New_York", second_pass)[0] < second_pass
    assert by_engine("30 1 * * *", "America/New_York", second_pass)[0] == at("2025-11-03T06:30")


def test_difference_both_make_up_for_a_gap_of_three_hours_which_cron_does_not() -> None:
    """cron(8) makes up for changes "of less than three hours". Casey moved on by three on 18 October 2009."""
    before = at("2009-10-17T16:00")
    assert by_cronsim("30 3 * * *", "Antarctica/Casey", before)[0] == at("2009-10-17T18:00")
    assert by_crondst("30 3 * * *", "Antarctica/Casey", before)[0] == at("2009-10-17T19:00")
    assert by_engine("30 3 * * *", "Antarctica/Casey", before)[0] == at("2009-10-18T16:30")


def test_difference_cronsim_makes_up_for_a_day_that_was_left_out() -> None:
    """Samoa had no 30 December 2011."""
    before = at("2011-12-29T12:00")
    assert by_cronsim("0 12 * * *", "Pacific/Apia", before)[1] == at("2011-12-30T10:00")
    assert runs(Cron.parse("0 12 * * *", "Pacific/Apia"), before, 2)[1] == "2011-12-30T22:00:00Z"


def test_difference_cronsim_loses_matches_after_a_midnight_that_was_left_out() -> None:
    """Havana's clocks go from 00:00 to 01:00. A wildcard rule for that Sunday has its three minutes."""
    before = at("2038-03-13T12:00")
    sunday = [at("2038-03-14T05:00"), at("2038-03-14T05:20"), at("2038-03-14T05:40")]
    assert by_engine("*/20 1 * * 0", "America/Havana", before) == sunday
    assert by_cronsim("*/20 1 * * 0", "America/Havana", before) == []


def test_difference_cronsim_loses_matches_where_the_repeated_stretch_is_not_from_hour_to_hour() -> None:
    """Lord Howe goes back from 02:00 to 01:30 (Chatham from 03:45 to 02:45). What comes after it runs too."""
    before = at("2009-04-04T14:45")
    assert at("2009-04-04T15:30") in by_engine("*/30 2-4 * * *", "Australia/Lord_Howe", before)
    assert at("2009-04-04T15:30") not in by_cronsim("*/30 2-4 * * *", "Australia/Lord_Howe", before)
