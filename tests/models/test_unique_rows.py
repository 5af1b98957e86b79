"""One value, one row: whichever way makes it, in whichever spelling, with USE_TZ on or off; and it is found again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.models.values import KINDS, WAYS, model, obtain, value
from tests.processes import run_python
from tests.scratch import Scratch

pytestmark = pytest.mark.concurrency


def every_way() -> dict[str, list[Any]]:
    """For each kind: the keys that every way and spelling gave, and that every spelling of a lookup found."""
    found = {}
    for number, kind in enumerate(KINDS):
        rows = model(kind).objects
        spellings = [value(kind, number, spelling) for spelling in range(3)]
        keys = {obtain(kind, way, number, spelling)[0].pk for way in WAYS for spelling in range(3)}
        keys |= {row.pk for row in rows.bulk_create([model(kind)(**each) for each in spellings])}
        new = [value(kind, 100 + number, spelling) for spelling in range(3)]
        fresh = {row.pk for row in rows.bulk_create([model(kind)(**each) for each in new])}
        looked_up = {rows.get(**each).pk for each in spellings}
        looked_up |= {row.pk for each in spellings for row in rows.filter(**each)}
        found[kind] = [len(keys), keys == looked_up, len(fresh), rows.count()]
    return found


@pytest.mark.parametrize("aware", ["1", "0"])
def test_every_way_and_spelling_gives_the_one_row(database: Scratch, aware: str) -> None:
    env = {**database.env, "ONEBEAT_TEST_USE_TZ": aware, "ONEBEAT_TEST_TIME_ZONE": "America/Chicago"}
    assert run_python(env, every_way) == {kind: [1, True, 1, 2] for kind in KINDS}


def the_repeated_hour() -> list[int]:
    """The two 01:30s of autumn: keys of three bulk inserts, then of one look at each."""
    from onebeat.models import ClockedSchedule

    first = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    second = first + timedelta(hours=1)
    rows = ClockedSchedule.objects
    made = [rows.bulk_create([ClockedSchedule(clocked_time=one) for one in ones])
            for ones in ([second], [first, second], [first])]  # fmt: skip
    return [row.pk for each in made for row in each] + [rows.get(clocked_time=one).pk for one in (first, second)]


def test_the_repeated_hour_of_autumn(database: Scratch) -> None:
    env = {**database.env, "ONEBEAT_TEST_TIME_ZONE": "America/New_York"}
    second, first, *rest = run_python(env, the_repeated_hour)
    assert first != second and rest == [second, first, first, second]


def test_the_repeated_hour_without_zones(database: Scratch) -> None:
    env = {**database.env, "ONEBEAT_TEST_TIME_ZONE": "America/New_York", "ONEBEAT_TEST_USE_TZ": "0"}
    second, first, *rest = run_python(env, the_repeated_hour)
    assert rest == [second, first, first, second]
    # Where the column itself is a wall clock, the hour that comes twice is one value.
    assert (first != second) == (database.vendor == "postgresql")
