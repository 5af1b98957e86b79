"""Rows that were written from the settings past the sync are nobody's hand: they go on following the code."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from celery.schedules import crontab

from onebeat.celery.beat import Scheduler
from onebeat.compat.schedulers import DatabaseScheduler
from onebeat.declare import sources
from onebeat.declare.entries import _WRITTEN, written_by_old_beat
from onebeat.declare.overriding import overrides
from onebeat.declare.sync import sync
from onebeat.models import Change, Declared, PeriodicTask
from tests.declare.conftest import Code
from tests.processes import run_python
from tests.project.celery import app
from tests.takeover.old import Old, old, old_templates
from tests.takeover.real import real, store_settings

__all__ = ["old", "old_templates"]

Entries = dict[str, dict[str, Any]]


def entry(seconds: int, **more: Any) -> dict[str, Any]:
    return {"task": "a.b", "schedule": seconds, **more}


def sync_settings(entries: Entries, edit: dict[str, Any] | None = None) -> dict[str, Any]:
    """What a task is after a person's edit of `a` and a sync: [seconds, queue, kwargs, enabled, overrides] by name."""
    if edit:
        PeriodicTask.objects.filter(name="a").update(**edit)
    app.conf.beat_schedule = entries
    sync("default", [sources.of_settings(app)])
    return {
        row.name: [row.interval.every, row.queue, json.loads(row.kwargs), row.enabled,
                   [each.field for each in overrides(row)]]
        for row in PeriodicTask.objects.exclude(name="celery.backend_cleanup")
    }  # fmt: skip


def test_rows_of_an_earlier_deploy_s_settings_follow_and_a_hand_stays_a_hand(old: Old) -> None:
    first = {"a": entry(60, options={"queue": "q"}), "b": entry(60), "c": entry(60)}
    real(old.scratch, store_settings, first)
    old.run("UPDATE django_celery_beat_periodictask SET enabled = %s WHERE name = 'c'", False)
    old.migrate()
    env = old.scratch.env
    # A deploy that changes entries takes the database over.
    found = run_python(env, sync_settings, {"a": entry(90), "b": entry(60), "c": entry(90)})
    assert found == {
        "a": [90, None, {}, True, []], "b": [60, None, {}, True, []], "c": [90, None, {}, False, ["enabled"]],
    }  # fmt: skip
    edit = {"kwargs": json.dumps({"mine": 1})}
    found = run_python(env, sync_settings, {"a": entry(120), "c": entry(90)}, edit)
    assert found["a"] == [120, None, {"mine": 1}, True, ["kwargs"]]
    assert found["b"] == [60, None, {}, False, []]

    # Back to django-celery-beat, whose beat writes what another deploy says; then forward again.
    old.call(("onebeat", "handback"))
    real(old.scratch, store_settings, {"a": entry(30), "c": entry(90), "d": entry(10)})
    found = run_python(env, sync_settings, {"a": entry(45), "d": entry(20)})
    assert found["a"] == [45, None, {}, True, []] and found["d"] == [20, None, {}, True, []]
    assert not found["c"][3] and not found["b"][3]


@pytest.mark.django_db
def test_what_the_old_scheduler_s_name_has_stored_follows_under_the_new_one(still: None, code: Code) -> None:
    app.conf.beat_schedule = {"a": entry(60), "b": entry(60), "c": entry(60)}
    before = PeriodicTask.objects.count()
    DatabaseScheduler(app=app).tick()
    assert PeriodicTask.objects.count() >= before + 3
    PeriodicTask.objects.filter(name="c").update(queue="mine")
    PeriodicTask.objects.update(date_changed=datetime(2040, 1, 1, tzinfo=UTC))  # written after the take-over
    code(settings={"a": entry(90), "c": entry(60)})
    rows = {row.name: row for row in PeriodicTask.objects.all()}
    assert rows["a"].interval.every == 90 and not rows["b"].enabled
    assert (rows["c"].queue, rows["c"].enabled) == ("mine", True)


@pytest.mark.django_db
def test_a_hint_is_proof_of_a_hand_whatever_the_clock_of_its_host_says(still: None, code: Code) -> None:
    """A row of before the take-over, which a person edits from a host whose clock is behind, before the first sync."""
    DatabaseScheduler.Entry.from_entry("a", app=app, **entry(60))
    Declared.objects.all().delete()
    Change.objects.all().delete()
    rows = PeriodicTask._base_manager.filter(name="a")
    rows.update(date_changed=datetime(2001, 1, 1, tzinfo=UTC))
    PeriodicTask.objects.filter(name="a").update(queue="mine")
    assert written_by_old_beat("default", rows.get(), {}) is None
    Change.objects.all().delete()  # as django-celery-beat leaves it
    assert written_by_old_beat("default", rows.get(), dict.fromkeys(_WRITTEN)) is not None


class Keeps:
    """A result backend, as far as the clean-up asks."""

    supports_autoexpire = False


def test_the_clean_up_of_results_follows_the_code(still: None, code: Code, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(app), "backend", Keeps())
    code()
    name = "celery.backend_cleanup"
    assert PeriodicTask.objects.get(name=name).crontab.hour == "4"
    own = {"task": name, "schedule": crontab(minute="30", hour="5"), "options": {"expires": 60}}
    code(settings={name: own})
    row = PeriodicTask.objects.get(name=name)
    assert (row.crontab.hour, row.expire_seconds, overrides(name)) == ("5", 60, [])
    PeriodicTask.objects.filter(name=name).update(queue="mine", enabled=False)
    code(force=True)
    row = PeriodicTask.objects.get(name=name)
    assert (row.crontab.hour, row.queue, row.enabled) == ("4", "mine", False)  # a person's, and it stays
    monkeypatch.setattr(type(app), "backend", type("Expires", (), {"supports_autoexpire": True})())
    PeriodicTask.objects.filter(name=name).update(enabled=True)
    code(force=True)
    assert not PeriodicTask.objects.get(name=name).enabled
    assert Scheduler(app=app).declared_in_code()[1].specs == {}
