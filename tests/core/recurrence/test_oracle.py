"""The engine against the brute-force oracle, around the clock changes of many zones."""

from __future__ import annotations

import os
import random
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from onebeat.core.recurrence import Cron, InvalidSchedule
from tests.core.oracle import Window, changes, draw, runs, window

#: Hour, half-hour, two-hour and quarter-hour shifts, midnight gaps, skipped and repeated days, winter time as
#: negative summer time, changes around Ramadan, zones that changed or gave up their rules, both hemispheres.
ZONES = (
    "Africa/Cairo", "Africa/Casablanca", "Africa/Windhoek", "America/Asuncion", "America/Havana", "America/New_York",
    "America/Nuuk", "America/Santiago", "America/Sao_Paulo", "America/St_Johns", "Antarctica/Casey",
    "Antarctica/Troll", "Asia/Amman", "Asia/Beirut", "Asia/Gaza", "Asia/Jerusalem", "Asia/Kathmandu",
    "Asia/Pyongyang", "Asia/Tehran", "Atlantic/Azores", "Australia/Adelaide", "Australia/Lord_Howe", "Europe/Dublin",
    "Europe/Istanbul", "Europe/London", "Europe/Moscow", "Europe/Paris", "Europe/Volgograd", "Pacific/Apia",
    "Pacific/Chatham", "Pacific/Easter", "Pacific/Fakaofo", "Pacific/Kiritimati", "Pacific/Kwajalein",
)  # fmt: skip
CHANGELESS = ("UTC", "Asia/Tokyo", "Etc/GMT+5")
RULES_PER_WINDOW = 12
#: Random rules. The default takes well under a minute; the long run of the Makefile asks for more.
ROUNDS = int(os.environ.get("ONEBEAT_ORACLE_ROUNDS", "1200"))


def check(rng: random.Random, around: Window, near: datetime) -> int:
    """Draw a rule, compare every run of the window, ask from moments between them. Returns how many runs it had."""
    drawn = draw(rng, near)
    try:
        cron = Cron(*drawn.texts, tz=around.zone)
    except InvalidSchedule as error:
        assert error.field in ("day_of_month", "day_of_week"), error
        assert "never" in str(error)
        assert not runs(drawn, around), drawn.texts
        return 0
    expected = runs(drawn, around)
    end = around.minutes[-1][0]
    found = []
    instant = cron.after(around.start)
    while instant is not None and instant <= end:
        found.append(instant)
        instant = cron.after(instant)
    assert found == expected, (drawn.texts, around.zone, sorted(set(found) ^ set(expected))[:4])
    for _ in range(8):
        moment = around.start + timedelta(microseconds=rng.randrange((end - around.start) // timedelta(microseconds=1)))
        following = cron.after(moment)
        if following is not None and following > end:
            following = None
        assert following == next((run for run in expected if run > moment), None), (drawn.texts, around.zone, moment)
    return len(found)


@pytest.mark.timeout(120 + ROUNDS // 20)
def test_random_rules_around_changes_of_the_clock() -> None:
    rng = random.Random(ROUNDS)  # a longer run draws other rules
    checked = with_runs = 0
    zones: set[str] = set()
    while checked < ROUNDS:
        zone = rng.choice(ZONES)
        change = rng.choice(changes(zone))
        around = window(zone, change)
        wall_before = next(wall for instant, wall in reversed(around.minutes) if instant < change)
        for _ in range(RULES_PER_WINDOW):
            near = wall_before + timedelta(minutes=rng.choice([-45, -1, 0, 1, 16, 31, 61, 75, 121]))
            with_runs += check(rng, around, near) > 0
            checked += 1
        zones.add(zone)
        window.cache_clear()
    assert len(zones) >= 20
    assert with_runs > checked / 2, "most rules must have runs, or nothing was compared"


def test_random_rules_in_zones_without_changes() -> None:
    rng = random.Random(7)
    for zone in CHANGELESS:
        for year in (1970, 2024, 2100):
            around = window(zone, datetime.fromisoformat(f"{year}-03-01T00:00:00+00:00"))
            for _ in range(20):
                check(rng, around, around.minutes[5000][1])


def test_the_windows_hold_gaps_and_repeats_of_many_sizes() -> None:
    """Else the comparison above would say little."""
    jumps = set()
    for zone in ZONES:
        tz = ZoneInfo(zone)
        for change in changes(zone):
            old, new = (change - timedelta(minutes=1)).astimezone(tz).utcoffset(), change.astimezone(tz).utcoffset()
            assert old is not None
            assert new is not None
            jumps.add((new - old) / timedelta(hours=1))
    assert {1, -1, 0.5, -0.5, 2, -2, 3, 24, 0.25} <= jumps
