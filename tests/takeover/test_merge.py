"""Taking over a database: duplicates become one row, everything that refers to them follows, nothing is lost."""

from __future__ import annotations

import json

import pytest

from tests.processes import manage
from tests.scratch import Scratch
from tests.takeover.old import PREFIX, Old

VALUES = {
    "intervalschedule": "every, period",
    "crontabschedule": "minute, hour, day_of_month, month_of_year, day_of_week, timezone",
    "clockedschedule": "clocked_time",
}


@pytest.fixture
def old(blank_database: Scratch) -> Old:
    return Old(blank_database)


def test_each_value_becomes_its_oldest_row_and_the_tasks_follow(old: Old) -> None:
    old.intervals((2, 5, "minutes"), (3, 5, "minutes"), (5, 7, "minutes"), (7, 5, "minutes"))
    old.crontabs(
        (1, "*/5", "*", "*", "*", "*"), (2, "*/5", "*", "*", "*", "*"), (3, "*/5", "*", "*", "*", "*", "Europe/Paris")
    )
    old.clocks((4, "2030-01-01 10:00:00"), (6, "2030-01-01 10:00:00"), (8, "2030-01-01 10:00:01"))
    for key in (2, 3, 5, 7):
        old.task(f"interval {key}", interval_id=key)
    for key in (1, 2, 3):
        old.task(f"crontab {key}", crontab_id=key)
    for key in (4, 6, 8):
        old.task(f"clocked {key}", clocked_id=key, one_off=True)
    old.migrate("--verbosity=0")
    assert old.keys("intervalschedule") == [2, 5]
    assert old.keys("crontabschedule") == [1, 3]
    assert old.keys("clockedschedule") == [4, 8]
    uses = {kind: old.uses(f"{kind}_id") for kind in ("interval", "crontab", "clocked")}
    assert {name: key for name, key in uses["interval"].items() if key} == {
        "interval 2": 2, "interval 3": 2, "interval 5": 5, "interval 7": 2,
    }  # fmt: skip
    assert {name: key for name, key in uses["crontab"].items() if key} == {
        "crontab 1": 1, "crontab 2": 1, "crontab 3": 3,
    }  # fmt: skip
    assert {name: key for name, key in uses["clocked"].items() if key} == {
        "clocked 4": 4, "clocked 6": 4, "clocked 8": 8,
    }  # fmt: skip
    assert not manage(old.scratch.env, "makemigrations", "--check", "--dry-run", "django_celery_beat").count("+")
    for table, columns in VALUES.items():
        with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
            old.run(f"INSERT INTO {PREFIX}{table} ({columns}) SELECT {columns} FROM {PREFIX}{table}")
    told = json.loads(manage(old.scratch.env, "onebeat", "adopt", "--json"))
    assert told["interval"]["merged"] == 2
    assert told["interval"]["repointed"] == {f"{PREFIX}periodictask.interval_id": 2}
    assert told["interval"]["kept"] == [{"id": 2, "value": "5 minutes", "merged": 2, "tasks": 3}]
