"""One instant."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from onebeat.core.recurrence import Clocked, InvalidSchedule
from tests.core.walking import at, runs


def test_it_runs_once_to_the_microsecond() -> None:
    rule = Clocked(at("2026-05-01T12:00:00.000001"))
    assert runs(rule, "2026-01-01") == ["2026-05-01T12:00:00.000001Z"]
    assert rule.after(rule.instant - timedelta(microseconds=1)) == rule.instant
    assert rule.after(rule.instant) is None


def test_the_instant_counts_and_not_how_it_is_written() -> None:
    assert Clocked(at("2026-05-01T14:00+02:00")) == Clocked(at("2026-05-01T12:00"))


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(InvalidSchedule) as caught:
        Clocked(datetime(2026, 1, 1))  # noqa: DTZ001
    assert caught.value.field == "clocked_time"
