"""Entries of CELERY_BEAT_SCHEDULE under `DatabaseScheduler`: tasks by name, every option kept or refused by name."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from celery.schedules import crontab, solar

from onebeat.celery.beat import Scheduler
from onebeat.compat.schedulers import DatabaseScheduler
from onebeat.core import clock
from onebeat.dispatch.celery.schedules import clocked
from onebeat.models import PeriodicTask
from onebeat.models.instants import to_utc
from tests.engine.kit import at
from tests.project.celery import app

Make = Callable[..., Any]


def stored(make: Make) -> dict[str, PeriodicTask]:
    make().tick()
    return {row.name: row for row in PeriodicTask.objects.all()}


def test_an_entry_that_was_clocked_and_becomes_an_interval_runs_again_and_again(make: Make) -> None:
    entry = {"task": "a.b", "schedule": clocked(at(60))}
    DatabaseScheduler.Entry.from_entry("a", app=app, **entry)
    assert PeriodicTask.objects.get().one_off
    DatabaseScheduler.Entry.from_entry("a", app=app, **{**entry, "schedule": 60})
    assert not PeriodicTask.objects.get().one_off
    PeriodicTask.objects.update(one_off=True)  # somebody's own wish, about which the entry says nothing
    DatabaseScheduler.Entry.from_entry("a", app=app, **{**entry, "schedule": 30})
    assert PeriodicTask.objects.get().one_off


def test_entries_of_the_settings_become_tasks(make: Make, declared: dict[str, Any]) -> None:
    declared["plain"] = {"task": "a.b", "schedule": 30.0, "args": (1, "x"), "kwargs": {"k": [1]}}
    declared["days"] = {"task": "a.b", "schedule": crontab(minute=0, hour=7, day_of_week=[1, 2, 3])}
    declared["half"] = {"task": "a.b", "schedule": timedelta(seconds=1.5)}
    declared["sun"] = {"task": "a.b", "schedule": solar("sunset", -37.5, 144.75)}
    declared["options"] = {
        "task": "a.b",
        "schedule": timedelta(hours=1),
        "options": {
            "queue": "q",
            "priority": 3,
            "expires": 5,
            "headers": {"h": 1},
            "exchange": "e",
            "routing_key": "r",
        },
        "description": "from the settings",
        "enabled": False,
    }
    declared["ends"] = {"task": "a.b", "schedule": 60, "options": {"expires": at(3600), "queue": None}}
    found = stored(make)
    assert set(found) == {*declared, "celery.backend_cleanup"} - ({"celery.backend_cleanup"} - set(found))
    assert (found["plain"].interval.every, found["plain"].interval.period) == (30, "seconds")
    assert (json.loads(found["plain"].args), json.loads(found["plain"].kwargs)) == ([1, "x"], {"k": [1]})
    assert found["days"].crontab.day_of_week == "1,2,3" and str(found["days"].crontab.timezone) == "UTC"
    assert (found["half"].interval.every, found["half"].interval.period) == (1_500_000, "microseconds")
    assert found["sun"].solar.event == "sunset"
    one = found["options"]
    assert (one.queue, one.priority, one.expire_seconds, one.exchange) == ("q", 3, 5, "e")
    assert (json.loads(one.headers), one.description, one.enabled) == ({"h": 1}, "from the settings", False)
    assert to_utc(found["ends"].expires) == at(3600)


REFUSED = {
    "options.expires": {"options": {"expires": "soon"}},
    "no such key": {"no such key": 1},
    "total_run_count": {"total_run_count": 1},
    "args": {"args": [object()]},
    "priority": {"options": {"priority": 1000}},
    "task": {"task": None},
    "schedule": {"schedule": object()},
}


@pytest.mark.parametrize("named", REFUSED)
def test_what_has_no_place_in_a_task_is_refused_by_name(
    make: Make, declared: dict[str, Any], named: str, caplog: pytest.LogCaptureFixture
) -> None:
    declared["bad"] = {"task": "a.b", "schedule": 60, **REFUSED[named]}
    declared["good"] = {"task": "a.b", "schedule": 60}
    found = stored(make)
    assert "bad" not in found and "good" in found
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert "'bad'" in line and named in line


NAMED = {
    "options.countdown": {"options": {"countdown": 3}},
    "options.colour": {"options": {"colour": "red"}},
    "relative": {"relative": True},
}


@pytest.mark.parametrize("named", NAMED)
def test_what_no_message_can_have_is_named_and_the_job_is_stored(
    make: Make, declared: dict[str, Any], named: str, caplog: pytest.LogCaptureFixture
) -> None:
    declared["one"] = {"task": "a.b", "schedule": 60, **NAMED[named]}
    assert "one" in stored(make)
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "'one'" in line and named in line


def test_more_options_of_the_message_and_a_task_object_are_stored(make: Make, declared: dict[str, Any]) -> None:
    from tests.project.tasks import add

    declared["one"] = {"task": add, "schedule": 60, "options": {"queue": "q", "compression": "zlib", "time_limit": 5}}
    row = stored(make)["one"]
    assert (row.task, row.queue) == ("tests.project.tasks.add", "q")
    assert json.loads(row.onebeat_options.extra) == {"compression": "zlib", "time_limit": 5}
    del declared["one"]["options"]["compression"]
    assert json.loads(stored(make)["one"].onebeat_options.extra) == {"time_limit": 5}


def test_the_settings_win_at_each_start_and_touch_nothing_that_is_as_they_say(
    make: Make, declared: dict[str, Any]
) -> None:
    declared["one"] = {"task": "a.b", "schedule": 60}
    before = stored(make)["one"]
    PeriodicTask.objects.filter(pk=before.pk).update(enabled=False, total_run_count=7)
    clock.move(at(60))
    same = stored(make)["one"]
    assert same.date_changed == before.date_changed
    declared["one"] = {"task": "a.c", "schedule": crontab()}
    after = stored(make)["one"]
    assert (after.pk, after.task, after.interval, after.total_run_count) == (before.pk, "a.c", None, 7)
    assert not after.enabled  # that is no setting's, unless it says so


def test_a_subclass_may_take_out_its_own_keys_first(make: Make, declared: dict[str, Any]) -> None:
    class Tagged(DatabaseScheduler):
        def update_from_dict(self, mapping: Any) -> None:
            super().update_from_dict({name: {k: v for k, v in entry.items() if k != "tags"}
                                      for name, entry in mapping.items()})  # fmt: skip

    declared["one"] = {"task": "a.b", "schedule": 60, "tags": ["x"]}
    scheduler = make(Tagged)
    scheduler.tick()
    assert PeriodicTask.objects.filter(name="one").exists() and scheduler.classic == []


def test_under_our_own_name_what_people_changed_stays(make: Make, declared: dict[str, Any]) -> None:
    declared["one"] = {"task": "a.b", "schedule": 60}
    make(Scheduler).tick()
    PeriodicTask.objects.filter(name="one").update(queue="mine", task="a.mine")
    declared["one"] = {"task": "a.c", "schedule": 90}
    make(Scheduler).tick()
    row = PeriodicTask.objects.get(name="one")
    assert (row.interval.every, row.task, row.queue) == (90, "a.mine", "mine")


class Keeps:
    """A result backend, as far as the clean-up asks."""

    supports_autoexpire = False


def test_the_clean_up_of_results_is_a_task_where_results_are_kept(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    make(Scheduler).tick()
    assert not PeriodicTask.objects.exists()  # this project keeps no results
    monkeypatch.setattr(type(app), "backend", Keeps())
    make(Scheduler).tick()
    row = PeriodicTask.objects.get()
    assert (row.name, row.task, row.expire_seconds) == ("celery.backend_cleanup", "celery.backend_cleanup", 43_200)
    assert (row.crontab.minute, row.crontab.hour, row.crontab.day_of_week) == ("0", "4", "*")
    PeriodicTask.objects.update(enabled=False)
    make(Scheduler).tick()
    assert not PeriodicTask.objects.get().enabled  # a row that is there stays as it is


def test_under_the_old_name_it_is_there_unless_results_never_expire(make: Make) -> None:
    before = app.conf.result_expires
    try:
        app.conf.result_expires = None
        assert "celery.backend_cleanup" not in stored(make)
        app.conf.result_expires = 60
        assert stored(make)["celery.backend_cleanup"].expire_seconds == 43_200
    finally:
        app.conf.result_expires = before
