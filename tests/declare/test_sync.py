"""Code and database brought together: what people changed stays, what left is disabled, an older version waits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from celery.schedules import crontab
from django.core import mail
from django.core.management import call_command

from onebeat.core import clock
from onebeat.core.three_way_merge import QUIET
from onebeat.declare import autosync, sources
from onebeat.declare.overriding import drop_override, overridden, overrides
from onebeat.declare.sync import Report
from onebeat.declare.values import Cron, Every, Solar
from onebeat.dispatch.celery import app as celery_app
from onebeat.models import Action, CodeVersion, CrontabSchedule, Declared, IntervalSchedule, PeriodicTask, TaskOptions
from tests.declare.conftest import Code
from tests.engine.kit import Bench, at, due, every, sql, task, why
from tests.project.celery import app

ADD = "tests.project.tasks.add"


def one(name: str = "t", schedule: Any = None, **kwargs: Any) -> Any:
    return (name, schedule or Every(minutes=1), ADD), {"args": [1, 2], **kwargs}


def what(report: Report) -> dict[str, str]:
    return {change.name: change.what for change in report.changes}


def row(name: str = "t") -> PeriodicTask:
    return PeriodicTask.objects.get(name=name)


def test_a_declaration_becomes_a_task_that_runs(bench: Bench, code: Code) -> None:
    report = code(
        one("every", jitter=timedelta(0), overlap="skip", tags=["b", "a"], queue="q", time_limit=5, expires=60),
        one("cron", Cron("30 9 * * mon-fri", tz="Europe/Paris"), description="why", missed="skip"),
        one("sun", Solar("sunset", 48.85, 2.35), enabled=False),
    )
    assert what(report) == {"every": "new", "cron": "new", "sun": "new"} and report.refused == []
    every_minute = row("every")
    assert (every_minute.queue, every_minute.expire_seconds, json.loads(every_minute.args)) == ("q", 60, [1, 2])
    options = TaskOptions.objects.get(task=every_minute)
    assert (options.origin, options.tags, options.overlap, options.extra) == (
        "code",
        "a,b",
        "skip",
        '{"time_limit": 5}',
    )
    cron = row("cron")
    assert (str(cron.crontab.timezone), cron.crontab.day_of_week) == ("Europe/Paris", "1-5")
    assert (cron.description, cron.onebeat_options.missed) == ("why", "skip")
    assert (row("sun").solar.event, row("sun").enabled) == ("sunset", False)
    bench.work(61)
    assert bench.sent == [("every", 60)]
    assert Action.objects.filter(verb="sync", by="code").count() == 3


def test_what_is_as_declared_is_not_written(still: None, code: Code, django_assert_num_queries: Any) -> None:
    declared = [one(str(number), Every(hours=number + 1)) for number in range(20)]
    code(*declared)
    before = list(PeriodicTask.objects.order_by("pk").values())
    clock.move(at(60))
    assert set(what(code(*declared)).values()) == {"same"}
    assert list(PeriodicTask.objects.order_by("pk").values()) == before
    assert Action.objects.filter(verb="sync").count() == 20


def test_code_changes_and_a_person_s_change_stays(still: None, code: Code) -> None:
    code(one(queue="q", tags=["a"]))
    PeriodicTask.objects.update(priority=7)  # code says nothing of it
    mine = row()
    mine.interval, mine.queue = every(30), "mine"
    mine.save()
    report = code(one(schedule=Every(minutes=5), queue="other", kwargs={"k": 1}, tags=["a", "b"]))
    assert what(report) == {"t": "changed"}
    now = row()
    assert (now.interval.every, now.queue, now.priority, json.loads(now.kwargs)) == (30, "mine", 7, {"k": 1})
    assert now.onebeat_options.tags == "a,b"
    found = {each.field: (each.code, each.here) for each in overrides("t")}
    assert found == {
        "schedule": (["interval", 5, "minutes"], ["interval", 30, "seconds"]),
        "queue": ("other", "mine"),
    }
    assert overridden(["t", "none"]) == {"t": overrides(now)}


def test_an_override_can_be_dropped(still: None, code: Code) -> None:
    code(one(queue="q"))
    PeriodicTask.objects.update(enabled=False, queue="mine", interval=every(30))
    assert {each.field for each in overrides("t")} == {"schedule", "enabled", "queue"}
    assert drop_override("t", "enabled", by="ann") and drop_override(row(), "schedule")
    assert not drop_override("t", "schedule")
    now = row()
    assert (now.enabled, now.interval.every, now.interval.period, now.queue) == (True, 1, "minutes", "mine")
    assert [each.field for each in overrides("t")] == ["queue"]
    assert Action.objects.filter(verb="sync", by="ann", detail="enabled").count() == 1
    for name, field, words in (("t", "priority", "field: code says nothing"), ("x", "queue", "task: 'x' is not")):
        with pytest.raises(ValueError, match=words):
            drop_override(name, field)


def test_what_left_the_code_is_disabled_and_comes_back_as_it_was(still: None, code: Code) -> None:
    code(one("stays"), one("goes"), one("was off"))
    PeriodicTask.objects.filter(name="was off").update(enabled=False)
    assert what(code(one("stays"))) == {"stays": "same", "goes": "removed", "was off": "removed"}
    assert {each.name: each.enabled for each in PeriodicTask.objects.all()} == {
        "stays": True,
        "goes": False,
        "was off": False,
    }
    reason = Action.objects.get(task_name="goes", why__startswith="no longer declared in declare/conftest.py")
    assert (reason.verb, reason.by) == ("sync", "code")
    verdict = why("goes", 60)
    assert verdict.facts["reason"] == "disabled" and "no longer declared in declare/conftest.py" in verdict.sentence
    assert "declared" not in why("was off", 60).sentence
    assert what(code(one("stays"))) == {"stays": "same"}
    assert what(code(one("stays"), one("goes", kwargs={"k": 1}), one("was off"))) == {
        "stays": "same",
        "goes": "back",
        "was off": "back",
    }
    assert row("goes").enabled and not row("was off").enabled and row("goes").kwargs == '{"k": 1}'


def test_one_that_left_and_was_enabled_by_hand_is_left_alone(still: None, code: Code) -> None:
    code(one("t"), one("u"))
    code(one("u"))
    PeriodicTask.objects.filter(name="t").update(enabled=True)
    code(one("u"), one("v"))
    assert row("t").enabled
    code(one("t"))
    assert row("t").enabled and overrides("t") == []


def test_what_a_person_deleted_stays_deleted_until_that_is_dropped(still: None, code: Code) -> None:
    code(one())
    row().delete()
    assert what(code(one(kwargs={"k": 1}))) == {"t": "deleted"}
    assert not PeriodicTask.objects.exists()
    assert [each.field for each in overrides("t")] == ["deleted"]
    assert drop_override("t", "deleted") and not drop_override("t", "deleted")
    assert row().kwargs == '{"k": 1}' and what(code(one(kwargs={"k": 1}))) == {"t": "same"}


def test_a_task_that_was_there_keeps_what_it_has(still: None, code: Code) -> None:
    task("t", interval=every(30))
    assert what(code(one())) == {"t": "same"}
    assert row().interval.every == 30 and row().task == "tests.engine.add"
    assert {each.field for each in overrides("t")} == {"schedule", "task", "args"}
    assert TaskOptions.objects.get(task=row()).origin == "code"


def test_one_bad_task_stops_no_other(still: None, code: Code) -> None:
    from onebeat.api import once

    once("key", at=timedelta(hours=1), task="a.b")
    report = code(
        one("key"),
        one("good"),
        settings={
            "bad": {"task": "a.b", "schedule": 60, "options": {"priority": 1000}},
            "fine": {"task": ADD, "schedule": 60},
        },
    )
    assert what(report) == {"good": "new", "fine": "new"}
    assert {each.name: each.why.split(":")[0] for each in report.refused} == {
        "key": "the name is the key of a task that runs once",
        "bad": "priority",
    }


def test_an_entry_that_has_become_unreadable_is_not_one_that_has_left(still: None, code: Code) -> None:
    code(settings={"t": {"task": ADD, "schedule": 60}})
    report = code(settings={"t": {"task": ADD, "schedule": object()}})
    assert what(report) == {} and [each.name for each in report.refused] == ["t"]
    assert row().enabled


def test_entries_of_the_settings_are_merged_the_same_way(still: None, code: Code) -> None:
    entry = {"task": ADD, "schedule": crontab(minute=0, hour=7), "args": (1, 2), "options": {"queue": "q"}}
    code(settings={"t": entry})
    assert (row().crontab.hour, row().queue, overrides("t")) == ("7", "q", [])
    PeriodicTask.objects.update(queue="mine")
    code(settings={"t": {**entry, "schedule": 90, "options": {"queue": "q2"}}})
    assert (row().interval.every, row().queue) == (90, "mine")
    # It moves to schedules.py, and has not left.
    assert what(code(one("t", Every(seconds=90), queue="q2"))) == {"t": "same"}
    assert row().enabled and Declared.objects.get(name="t").source == "schedules"
    assert what(code(one("t", Every(seconds=90)), settings={"t": entry})) == {"t": "same"}


def test_a_crontab_that_is_spelt_otherwise_is_the_same(still: None, code: Code) -> None:
    code(one("t", Cron("0 7 * * mon,tue")))
    sql("UPDATE django_celery_beat_crontabschedule SET day_of_week = 'tue,monday'")
    assert overrides("t") == []


def test_an_edit_by_the_sync_plans_anew(bench: Bench, code: Code) -> None:
    code(one())
    bench.tick()
    assert due(row()) == 60
    code(one(schedule=Every(minutes=5)))
    bench.tick()
    assert due(row()) == 300


def test_an_older_version_undoes_nothing_beside_a_newer_one(still: None, code: Code) -> None:
    old, new = [one("t"), one("gone")], [one("t", Every(minutes=5)), one("added")]
    code(*old)
    code(*new)
    report = code(*old)  # an old pod that starts once more
    assert report.standings == {"schedules": "older"} and report.changes == []
    assert (row("t").interval.every, row("added").enabled, row("gone").enabled) == (5, True, False)
    # The newer one reports now and then. Nobody has run it for long: the older one was put back.
    clock.move(at(QUIET.total_seconds() + 1))
    report = code(*old)
    assert what(report) == {"t": "changed", "gone": "back", "added": "removed"}
    assert (row("t").interval.every, row("added").enabled, row("gone").enabled) == (1, False, True)


def test_a_person_may_put_the_older_version_back_at_once(still: None, code: Code) -> None:
    code(one("t"))
    code(one("t"), one("added"))
    assert what(code(one("t"), force=True)) == {"t": "same", "added": "removed"}
    assert code(one("t"), one("added")).standings == {"schedules": "older"}


@pytest.fixture
def passed() -> Iterator[list[float]]:
    """The seconds that have passed, to be set by the test."""
    seconds = [0.0]
    with clock.using(clock.Source(monotonic=lambda: seconds[0])):
        yield seconds


def test_a_scheduler_keeps_its_version_s_turn_and_says_so(still: None, code: Code, passed: list[float]) -> None:

    def later(seconds: float) -> None:
        passed[0] += seconds
        clock.move(clock.host_now() + timedelta(seconds=seconds))

    code(one("t"), one("added"), apply=False)  # declares, and stores nothing
    newer = autosync.AtWork("default", lambda: [sources.of_apps()])
    code(one("t"), apply=False)
    code_of_old = sources.of_apps()
    old = autosync.AtWork("default", lambda: [code_of_old])
    old.step()
    code(one("t"), one("added"), apply=False)
    later(1)
    newer.step()
    assert row("added").enabled
    for _ in range(20):
        later(61)
        newer.step()
        old.step()
    assert row("added").enabled and CodeVersion.objects.get().seen_at == clock.host_now()
    # The newer one ends. One that was at work before it came does not undo it, one that is started afterwards does.
    for _ in range(20):
        later(61)
        old.step()
    assert row("added").enabled
    autosync.AtWork("default", lambda: [code_of_old]).step()
    assert not row("added").enabled


def test_a_broken_module_leaves_the_tasks_as_they_are(
    still: None, code: Code, caplog: pytest.LogCaptureFixture
) -> None:
    code(one())

    def broken() -> list[sources.Source]:
        raise RuntimeError("in shop/schedules.py")

    work = autosync.AtWork("default", broken)
    work.step()
    work.step()
    assert row().enabled and caplog.text.count("in shop/schedules.py") == 1


def test_migrate_syncs_and_flush_does_not(bench: Bench, code: Code, monkeypatch: pytest.MonkeyPatch) -> None:
    code(one("t"), apply=False, settings={"s": {"task": ADD, "schedule": 60}})
    call_command("migrate", verbosity=0)  # of a test's database
    monkeypatch.delattr(mail, "outbox")
    autosync.after_migrate(using="default")  # as `flush` sends it
    assert not PeriodicTask.objects.exists()
    call_command("migrate", verbosity=0)
    assert set(PeriodicTask.objects.values_list("name", flat=True)) == {"t", "s"}


def test_a_process_without_the_app_cannot_tell_what_left_the_settings(
    bench: Bench, code: Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    code(settings={"s": {"task": ADD, "schedule": 60}})
    assert celery_app.made_here() is not None
    monkeypatch.delattr(mail, "outbox")
    monkeypatch.setattr(app, "main", "default")  # as that of Celery's own, made when nobody has made one
    code(apply=False)
    call_command("migrate", verbosity=0)
    assert celery_app.made_here() is None and row("s").enabled


def test_rows_written_past_every_rule_are_read(still: None, code: Code) -> None:
    code(one())
    sql("UPDATE django_celery_beat_periodictask SET args = 'no json', interval_id = NULL")
    assert {each.field for each in overrides("t")} == {"schedule", "args"}
    assert what(code(one())) == {"t": "same"}
    assert drop_override("t", "schedule") and drop_override("t", "args") and overrides("t") == []


def test_one_row_for_each_schedule(still: None, code: Code) -> None:
    code(one("a"), one("b"), one("c", Cron("0 9 * * *")), one("d", Cron("0 9 * * *")))
    assert (IntervalSchedule.objects.count(), CrontabSchedule.objects.count()) == (1, 1)
