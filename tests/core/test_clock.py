from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from onebeat.core import clock

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


def test_a_pinned_clock_stands_still_until_it_is_moved() -> None:
    assert clock.pinned() is None
    with clock.pin(NOON):
        assert clock.host_now() == clock.host_now() == clock.pinned() == NOON
        clock.move(NOON + timedelta(seconds=1))
        assert clock.host_now() == NOON + timedelta(seconds=1)
    assert clock.pinned() is None


def test_a_pin_inside_a_pin_ends_where_it_began() -> None:
    with clock.pin(NOON):
        with clock.pin(NOON + timedelta(days=1)):
            clock.move(NOON + timedelta(days=2))
        assert clock.host_now() == NOON


def test_an_error_inside_lets_the_clock_go() -> None:
    with pytest.raises(KeyError), clock.pin(NOON):
        raise KeyError
    assert clock.pinned() is None


def test_instants_are_utc_whatever_zone_they_come_in() -> None:
    with clock.pin(datetime(2026, 3, 10, 17, 45, tzinfo=timezone(timedelta(hours=5, minutes=45)))):
        assert clock.host_now() == NOON
        assert clock.host_now().utcoffset() == timedelta(0)


def test_a_naive_instant_is_refused() -> None:
    naive = NOON.replace(tzinfo=None)
    with pytest.raises(ValueError, match="aware"):
        clock.move(naive)
    with pytest.raises(ValueError, match="aware"), clock.pin(naive):
        pass
    assert clock.pinned() is None


def test_real_time_is_aware_and_measuring_goes_on_under_a_pin() -> None:
    assert clock.host_now().utcoffset() == timedelta(0)
    with clock.pin(NOON):
        begin = clock.monotonic()
        clock.pause(0.001)
        assert clock.monotonic() > begin


def test_time_may_come_from_elsewhere() -> None:
    """The host, the database, the stopwatch and the waiting, each by itself; a pin stands before the first two."""
    waited: list[float] = []
    later = NOON + timedelta(hours=1)
    source = clock.Source(now=lambda: later, database=lambda: NOON, monotonic=lambda: 7.0, pause=waited.append)
    with clock.using(source):
        clock.pause(3)
        assert (clock.host_now(), clock.database_now(), clock.monotonic(), waited) == (later, NOON, 7.0, [3])
        with clock.pin(later + timedelta(days=1)):
            assert clock.host_now() == clock.database_now() == later + timedelta(days=1)
            assert clock.monotonic() == 7.0
    assert clock.database_now() is None
    assert clock.monotonic() != 7.0
