"""Crontab rows that were taken over mean what they meant to Celery, until they are edited."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.processes import run_python
from tests.takeover.arrive.test_merge_state import NOW, planned
from tests.takeover.old import CHECK, MIGRATE, PREFIX, Old, calls, old, old_templates

__all__ = ["old", "old_templates"]

#: Row, and what becomes of its task at NOW, a Wednesday at 12:00 (in part: of a reason).
ROWS: dict[str, tuple[tuple[Any, ...], str | None]] = {
    "kept": ((1, "30", "12", "*", "*", "*"), "01 12:30"),
    "every Friday": ((2, "0", "9", "*", "*", "fri#2", "europe/paris"), "03 07:00"),
    "every 5 minutes": ((3, "*/5-20", "*", "*", "*", "*"), "01 12:05"),
    "month as weekday": ((4, "0", "9", "*", "*", "mar"), "08 09:00"),
    "the 7th": ((5, "0", "9", "*", "*", "7"), None),
    "31 February": ((6, "0", "0", "31", "2", "*"), None),
    "nothing": ((7, "", "9", "*", "*", "*"), None),
    "no zone": ((8, "0", "9", "*", "*", "*", "Mars/Olympus"), "crontab: timezone: 'Mars/Olympus'"),
    "no zone, every Friday": ((9, "0", "9", "*", "*", "fri#2", "Mars/Olympus"), "crontab: timezone: 'Mars/Olympus'"),
}


def test_rows_keep_celerys_meaning_and_those_it_dropped_arrive_disabled(old: Old) -> None:
    for name, (row, _) in ROWS.items():
        old.crontabs(row)
        old.task(name, crontab_id=row[0], date_changed=f"{NOW:%Y-%m-%d %H:%M:%S}")
    old.task("the 7th, disabled before", crontab_id=5, enabled=False)
    # Intervals and places that no validator takes today; on SQLite a column holds anything.
    old.intervals((1, 0, "minutes"), (2, 5, "weeks"), (3, -5, "seconds"))
    old.insert("solarschedule", [{"id": 1, "event": "teatime", "latitude": 1, "longitude": 1}])
    old.insert("solarschedule", [{"id": 2, "event": "sunset", "latitude": 95, "longitude": 1}])
    bad = {f"interval {key}": {"interval_id": key} for key in (1, 2, 3)}
    bad |= {f"solar {key}": {"solar_id": key} for key in (1, 2)}
    for name, values in bad.items():
        old.task(name, **values)
    seen = run_python(old.scratch.env, taken_over)
    foreseen = seen["foreseen"]
    assert seen["done"] == foreseen
    assert [foreseen[name] for name in ("kept", "expanded", "disabled", "zone")] == [1, 4, 3, 1]
    assert {row["id"]: row["tasks"] for row in foreseen["rows"] if row["verdict"] == "disabled"} == {
        5: ["the 7th"], 6: ["31 February"], 7: ["nothing"],
    }  # fmt: skip
    assert "crontab 5 (0 9 * * 7 UTC): day_of_week: '7'" in seen["text"]
    assert "would be disabled: the 7th" in seen["text"]
    for name, (_, expected) in ROWS.items():
        planned_as = seen["planned"][name] or ""
        assert planned_as.startswith(expected or "") and bool(planned_as) == bool(expected), seen["planned"]
    for name in bad:
        assert seen["planned"][name].startswith(name.split()[0] + ": "), seen["planned"]
    assert [one["name"] for one in seen["status"]["disabled_at_takeover"]] == [
        *("the 7th", "31 February", "nothing", "the 7th, disabled before"),
    ]  # fmt: skip
    assert "disabled at the take-over: the 7th (5): day_of_week: '7'" in seen["told"]
    assert seen["unplannable"] == {
        "0 minutes": ["interval 1"], "5 weeks": ["interval 2"], "-5 seconds": ["interval 3"],
        "teatime": ["solar 1"], "sunset": ["solar 2"],
    }  # fmt: skip
    assert "interval (5 weeks): period: 'weeks' is not accepted" in seen["text"]
    assert seen["disabled"] == ["31 February", "nothing", "the 7th", "the 7th, disabled before"]
    assert seen["wrong"] == []


def taken_over() -> dict[str, Any]:
    """In a process of its own: the look beforehand, the migration, and life with the rows afterwards."""
    from onebeat.models import PeriodicTask

    (_, told), (_, text) = calls([(*CHECK, "--json"), CHECK])
    _, (_, report), (_, status), (_, plain) = calls(
        [MIGRATE, ("onebeat", "adopt", "--json"), ("onebeat", "status", "--json"), ("onebeat", "status")]
    )
    planned_by_the_grammar()
    return {
        "foreseen": json.loads(told)["readings"],
        "unplannable": {
            one["value"] if one["kind"] == "interval" else one["value"].split()[0]: one["tasks"]
            for one in json.loads(told)["unplannable"]
        },
        "status": json.loads(status),
        "told": plain,
        "text": text,
        "done": json.loads(report)["readings"],
        "planned": planned(),
        "disabled": sorted(PeriodicTask.objects.filter(enabled=False).values_list("name", flat=True)),
        "wrong": afterwards(),
    }


def planned_by_the_grammar() -> None:
    """A plan is there, made by the row's text by an older onebeat, that knows nothing of readings."""
    from onebeat.models import PeriodicTask, TaskState

    TaskState.objects.bulk_create(
        TaskState(task=task, anchor=NOW, enabled=True, one_off=False, crontab=task.crontab_id, rule="0 9 * * fri#2 UTC")
        for task in PeriodicTask.objects.filter(name="every Friday")
    )


def afterwards() -> list[str]:
    """Lives with the rows that were taken over; says what is not as it should be."""
    from onebeat.core import clock
    from onebeat.models import CrontabSchedule, PeriodicTask, TaskState
    from onebeat.models.celery_readings import look_up
    from onebeat.store.sweep import Sweep

    wrong = []

    def expect(what: str, found: Any, wanted: Any) -> None:
        if found != wanted:
            wrong.append(f"{what}: {found!r}, not {wanted!r}")

    def due(name: str) -> str:
        Sweep("default", 1000).step()
        state = TaskState.objects.get(task__name=name)
        return state.quarantine or f"{state.due_at:%d %H:%M}"

    rows = {row.pk: row for row in CrontabSchedule.objects.all()}
    with clock.pin(NOW):
        look_up("default", [rows[2], rows[5]])
        expect("in words, looked up", rows[2].human_readable, rows[2].__class__.objects.get(pk=2).human_readable)
        expect("in words", rows[2].human_readable, rows[2].recurrence() and CrontabSchedule(
            minute="0", hour="9", day_of_week="5", timezone="Europe/Paris").human_readable)  # fmt: skip
        Sweep("default", 1000).step()
        seen = Sweep("default", 1000)._changed(None)
        expect("changed at rest", list(TaskState.objects.filter(pk__in=seen, quarantine="")), [])
        # To save it unchanged, in a form or in code, changes nothing.
        rows[2].full_clean()
        rows[2].save()
        rows[3].save()
        CrontabSchedule.objects.bulk_update([rows[2]], ["hour", "day_of_week"])
        expect("saved", due("every Friday"), "03 07:00")
        # A new row never gets the old meaning, and is another row.
        new, made = CrontabSchedule.objects.get_or_create(
            hour="9", minute="0", day_of_week="fri#2", timezone="Europe/Paris"
        )
        expect("new", (made, new.day_of_week), (True, "5#2"))
        # An edit ends it.
        rows[2].hour = "10"
        rows[2].save()
        expect("edited", due("every Friday"), "10 08:00")
        # What Celery could not read stays off until somebody enables it and saves the row.
        PeriodicTask.objects.filter(name="the 7th").update(enabled=True)
        expect("enabled", due("the 7th").split(":")[0], "crontab")
        expect("words", rows[5].human_readable, str(rows[5]))
        rows[5].save()
        expect("enabled and saved", due("the 7th"), "05 09:00")
    return wrong


def test_rows_of_an_onebeat_that_read_them_otherwise_keep_that(old: Old) -> None:
    if old.link.vendor != "sqlite":
        pytest.skip("the same code")
    old.crontabs((1, "0", "9", "*", "*", "fri#2"))
    old.task("a", crontab_id=1, date_changed=f"{NOW:%Y-%m-%d %H:%M:%S}")
    old.call((*MIGRATE, "1004_onebeat_unique_clocked"))
    old.run("DELETE FROM onebeat_fact")
    old.call(MIGRATE)
    assert run_python(old.scratch.env, planned) == {"a": "10 09:00"}
    assert old.run(f"SELECT day_of_week FROM {PREFIX}crontabschedule") == [("fri#2",)]
