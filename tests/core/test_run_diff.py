"""What a change of rule does to the coming runs, and the load of the minutes to come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from onebeat.core.load_curve import Load
from onebeat.core.recurrence import Cron, Interval
from onebeat.core.run_diff import around_clock_changes, coming, compare

NOW = datetime(2026, 3, 27, 8, tzinfo=UTC)


def daily(*hours: int) -> list[datetime]:
    return coming(Cron("0", ",".join(map(str, hours))), NOW, 6)


@pytest.mark.parametrize(
    ("before", "after", "fates"),
    [
        ((9,), (9,), ["same"] * 6),
        ((9,), (10,), ["moved"] * 6),
        ((9,), (9, 10), ["same", "new"] * 3),
        ((9, 10), (9,), ["same", "gone"] * 3),
        ((), (9,), ["new"] * 6),
        ((9,), (), ["gone"] * 6),
        ((9, 10, 11), (12, 13), ["gone", "gone", "gone", "new", "new", "gone", "gone", "gone"]),
    ],
)
def test_what_becomes_of_the_runs(before: tuple[int, ...], after: tuple[int, ...], fates: list[str]) -> None:
    runs = compare(daily(*before) if before else [], daily(*after) if after else [], 6)
    assert [run.fate for run in runs] == fates
    for run in runs:
        assert (run.before is not None) == (run.fate == "moved")
    assert [run.at for run in runs] == sorted(run.at for run in runs)


def test_a_one_off_has_one_run() -> None:
    assert len(coming(Cron("0", "9"), NOW, 6, one_off=True)) == 1


def test_the_runs_near_both_clock_changes_of_a_year() -> None:
    near = list(around_clock_changes(Cron("30", "2", tz="Europe/Paris"), NOW))
    assert [f"{run:%m-%d %H:%M}" for run in near] == ["03-29 01:00", "10-25 00:30"]
    assert list(around_clock_changes(Cron("30", "2", tz="Asia/Tokyo"), NOW)) == []


def test_load_counts_each_minute() -> None:
    load = Load(NOW, 120)
    assert load.rule(Cron("*/30"), 3, 100) == 4
    load.rule(Interval(timedelta(minutes=60), NOW + timedelta(minutes=30)), 2, 100)
    load.every_minute(0.5)
    load.at(NOW - timedelta(minutes=1)), load.at(NOW + timedelta(minutes=120))
    assert [load.counts[minute] for minute in (0, 1, 30, 60, 90)] == [3.5, 0.5, 5.5, 3.5, 5.5]
    assert load.busiest(60) == [5.5, 5.5]
    assert load.peaks(2) == [(NOW + timedelta(minutes=30), 5.5), (NOW + timedelta(minutes=90), 5.5)]
    assert Load(NOW, 60).rule(Cron("*"), 1, 10) == 10
