from __future__ import annotations

import subprocess
import sys
import uuid
from datetime import UTC, datetime, timedelta, timezone

from onebeat.core.identity import celery_task_id

SPACE = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
DUE = datetime(2026, 3, 10, 10, 0, 0, 1, tzinfo=UTC)


def test_the_same_occurrence_has_the_same_id_in_every_process_and_for_ever() -> None:
    # Worked out with uuid.uuid5 by hand: the name is task, microseconds since 1970 and run.
    expected = uuid.uuid5(SPACE, "7/1773136800000001/0")
    assert celery_task_id(SPACE, 7, DUE) == expected
    code = (
        "import uuid, datetime as d; from onebeat.core.identity import celery_task_id;"
        f"print(celery_task_id(uuid.UUID('{SPACE}'), 7, d.datetime(2026,3,10,10,0,0,1,tzinfo=d.UTC)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert found == str(expected)


def test_equal_instants_have_one_id_whatever_zone_they_are_written_in() -> None:
    there = DUE.astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert celery_task_id(SPACE, 7, there) == celery_task_id(SPACE, 7, DUE)


def test_the_two_passes_of_an_autumn_hour_are_two_occurrences() -> None:
    first = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    assert celery_task_id(SPACE, 7, first) != celery_task_id(SPACE, 7, first + timedelta(hours=1))


def test_any_difference_gives_another_id() -> None:
    others = {
        celery_task_id(SPACE, 7, DUE),
        celery_task_id(uuid.uuid4(), 7, DUE),
        celery_task_id(SPACE, 8, DUE),
        celery_task_id(SPACE, 7, DUE + timedelta(microseconds=1)),
        celery_task_id(SPACE, 7, DUE, run=1),
        celery_task_id(SPACE, 71, DUE),
    }
    assert len(others) == 6
    assert {one.version for one in others} == {5}
