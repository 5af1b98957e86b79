"""After the switch every task goes on from where django-celery-beat left it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.processes import run_python
from tests.takeover.old import MIGRATE, Old, old, old_templates

__all__ = ["old", "old_templates"]

pytestmark = pytest.mark.long("mariadb", "sqlite")

NOW = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)


def planned() -> dict[str, str | None]:
    """Each task's next time, planned at NOW, in another process."""
    from onebeat.core import clock
    from onebeat.db import transactions
    from onebeat.models import PeriodicTask, TaskState
    from onebeat.store import plans

    with clock.pin(NOW), transactions.short_transaction("default"):
        plans.plan("default", PeriodicTask.objects.values_list("pk", flat=True), NOW)
    rows = TaskState.objects.values_list("task__name", "due_at", "quarantine")
    return {name: why or (due and f"{due:%d %H:%M}") for name, due, why in rows}


def test_tasks_go_on_from_their_last_run_and_finished_ones_stay_finished(old: Old) -> None:
    old.intervals((1, 10, "minutes"), (2, 10, "minutes"))
    old.crontabs((1, "30", "*", "*", "*", "*"), (2, "30", "*", "*", "*", "*"))
    old.clocks((1, "2030-05-01 11:00:00"), (2, "2030-05-01 11:00:00"), (3, "2030-05-02 11:00:00"))
    ran = {"total_run_count": 7, "last_run_at": "2030-05-01 11:35:00"}
    once, new = {"one_off": True}, {"date_changed": "2030-05-01 11:55:00"}
    old.task("interval, ran", interval_id=1, **ran)
    old.task("interval, ran, of a duplicate", interval_id=2, **ran)
    old.task("interval, new", interval_id=2, **new)
    old.task("interval, disabled", interval_id=2, enabled=False, **ran)
    old.task("interval once, ran", interval_id=2, **ran, **once)
    old.task("interval once, new", interval_id=2, **once, **new)
    old.task("crontab, ran before the last turn", crontab_id=2, total_run_count=1, last_run_at="2030-05-01 10:30:00")
    old.task("crontab, ran", crontab_id=2, total_run_count=1, last_run_at="2030-05-01 11:30:00")
    old.task("crontab, new", crontab_id=1, **new)
    old.task("crontab, made before the last turn", crontab_id=1, date_changed="2030-05-01 11:20:00")
    old.task("crontab, ended", crontab_id=1, expires="2030-05-01 11:40:00", **ran)
    old.task("clocked, past, never sent", clocked_id=2, **once)
    old.task("clocked, past, sent", clocked_id=2, **ran, **once)
    old.task("clocked, past, sent, disabled by beat", clocked_id=1, enabled=False, **ran, **once)
    old.task("clocked, to come", clocked_id=3, **once)
    old.call(MIGRATE)
    assert run_python(old.scratch.env, planned) == {
        "interval, ran": "01 11:45",
        "interval, ran, of a duplicate": "01 11:45",
        "interval, new": "01 12:05",
        "interval, disabled": None,
        "interval once, ran": None,
        "interval once, new": "01 12:05",
        "crontab, ran before the last turn": "01 11:30",
        "crontab, ran": "01 12:30",
        "crontab, new": "01 12:30",
        "crontab, made before the last turn": "01 11:30",
        "crontab, ended": None,
        "clocked, past, never sent": "01 11:00",
        "clocked, past, sent": None,
        "clocked, past, sent, disabled by beat": None,
        "clocked, to come": "02 11:00",
    }
    assert set(old.uses("total_run_count").values()) == {0, 1, 7}


def test_a_merge_after_a_plan_is_no_edit(old: Old) -> None:
    # Taken over, then back without the constraints for a while, in which a duplicate came in.
    old.intervals((2, 10, "minutes"))
    old.task("a", interval_id=2, total_run_count=7, last_run_at="2030-05-01 11:35:00")
    old.call(MIGRATE)
    assert run_python(old.scratch.env, planned) == {"a": "01 11:45"}
    old.call((*MIGRATE, "1001_onebeat_engine"))
    old.intervals((1, 10, "minutes"))
    old.call(MIGRATE)
    assert old.uses("interval_id") == {"a": 1}
    assert run_python(old.scratch.env, planned) == {"a": "01 11:45"}
