"""The sun's events, against ephem's own search and against the sun's height itself."""

from __future__ import annotations

import math
import random
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from onebeat.core.recurrence import EVENTS, InvalidSchedule, Solar, SolarUnavailable, solar
from tests.core.walking import at

ephem = pytest.importorskip("ephem")

HORIZONS = {"dawn_astronomical": -18, "dawn_nautical": -12, "dawn_civil": -6, "sunrise": "-0:34"}
SETTINGS = {"dusk_astronomical": -18, "dusk_nautical": -12, "dusk_civil": -6, "sunset": "-0:34"}


def by_ephem(event: str, latitude: float, longitude: float, after: datetime) -> datetime:
    place = ephem.Observer()
    place.lat, place.lon, place.pressure = math.radians(latitude), math.radians(longitude), 0
    sun, start = ephem.Sun(), ephem.Date(after.replace(tzinfo=None))
    if event == "solar_noon":
        return place.next_transit(sun, start=start).datetime().replace(tzinfo=UTC)  # type: ignore[no-any-return]
    place.horizon = str({**HORIZONS, **SETTINGS}[event])
    search = place.next_rising if event in HORIZONS else place.next_setting
    found = search(sun, start=start, use_center=not event.startswith("sun"))
    return found.datetime().replace(tzinfo=UTC)  # type: ignore[no-any-return]


@pytest.mark.parametrize("event", EVENTS)
def test_the_second_that_ephem_finds(event: str) -> None:
    rng = random.Random(event)
    for _ in range(40):
        latitude, longitude = rng.uniform(-45, 45), rng.uniform(-180, 180)
        after = at("2000-01-01") + timedelta(seconds=rng.randrange(50 * 365 * 86400))
        found = Solar(event, latitude, longitude).after(after)
        assert found is not None
        assert found > after
        theirs = by_ephem(event, latitude, longitude, after)
        assert abs(found - theirs) <= timedelta(seconds=1.6), (latitude, longitude, after)


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("latitude", [-89.9, -78, -66.6, 0, 59.7, 66.6, 69.6492, 78.2, 89.9])
def test_every_event_comes_back_at_every_latitude(event: str, latitude: float) -> None:
    rule = Solar(event, latitude, 18.9553)
    instant = at("2026-05-20")
    for _ in range(3):
        following = rule.after(instant)
        assert following is not None
        assert timedelta(0) < following - instant < timedelta(days=380)
        assert rule.after(following - timedelta(seconds=1)) == following
        assert rule.after(instant + (following - instant) / 2) == following
        instant = following


def test_the_first_sunrise_after_the_polar_day_is_the_first_minute_the_sun_comes_up() -> None:
    """Minute by minute at Tromso, where the first night after the polar day lasts half an hour."""
    place = ephem.Observer()
    place.lat, place.lon, place.pressure = "69.6492", "18.9553", 0
    sun = ephem.Sun()

    def is_up(instant: datetime) -> bool:
        place.date = instant.replace(tzinfo=None)
        sun.compute(place)
        return float(sun.alt + sun.radius) >= math.radians(-34 / 60)

    instant = at("2026-07-01")
    while is_up(instant):
        instant += timedelta(minutes=1)
    while not is_up(instant):
        instant += timedelta(minutes=1)
    found = Solar("sunrise", 69.6492, 18.9553).after(at("2026-06-01"))
    assert found is not None
    assert instant - timedelta(minutes=1) <= found <= instant


def test_sunset_and_sunrise_take_turns_through_a_year_at_the_edge_of_the_white_nights() -> None:
    rise, sink = Solar("sunrise", 65.8, 24), Solar("sunset", 65.8, 24)
    instant, end = at("2026-01-01"), at("2027-01-01")
    first, second = rise.after(instant), sink.after(instant)
    assert first is not None
    assert second is not None
    turns = sorted([(first, "up"), (second, "down")])
    while turns[-1][0] < end:
        last, which = turns[-1]
        found = (sink if which == "up" else rise).after(last)
        assert found is not None
        other = (rise if which == "up" else sink).after(last)
        assert other is not None
        assert found < other, "a sunrise is never followed by another without a sunset between"
        turns.append((found, "down" if which == "up" else "up"))


@pytest.mark.parametrize(
    ("event", "latitude", "longitude", "field"),
    [("moonrise", 0, 0, "event"), ("sunrise", 89.95, 0, "latitude"), ("sunrise", -90, 0, "latitude"),
     ("sunrise", 0, 180.1, "longitude"), ("sunrise", math.nan, 0, "latitude"), ("sunrise", 0, "east", "longitude")],
)  # fmt: skip
def test_what_cannot_be(event: str, latitude: float, longitude: float, field: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        Solar(event, latitude, longitude)
    assert caught.value.field == field


def test_decimals_are_the_same_place() -> None:
    assert Solar("sunset", Decimal("48.5"), Decimal("2.25")) == Solar("sunset", 48.5, 2.25)


def test_the_two_ends_of_the_calendar() -> None:
    rule = Solar("solar_noon", 0, 0)
    assert rule.after(datetime.max.replace(tzinfo=UTC)) is None
    first = rule.after(datetime.min.replace(tzinfo=UTC))
    assert first is not None
    assert first.year == 1


def test_without_the_library_the_hint_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ephem", None)
    solar._ephem.cache_clear()
    try:
        with pytest.raises(SolarUnavailable, match=r"pip install 'onebeat\[solar\]'"):
            Solar("sunrise", 0, 0)
    finally:
        solar._ephem.cache_clear()
