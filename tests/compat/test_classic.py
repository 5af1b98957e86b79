"""Schedulers that replace a part that onebeat has not: Celery's own loop runs them, and says what is off."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from celery.schedules import schedstate

from onebeat.compat.schedulers import DatabaseScheduler, ModelEntry
from onebeat.models import Change, Occurrence, PeriodicTask, PeriodicTasks, TaskState
from onebeat.models.instants import to_utc
from tests.compat.beating import drive, task, waiting
from tests.engine.kit import clocked, every
from tests.processes import eventually

Make = Callable[..., Any]


class OwnEntry(ModelEntry):
    def is_due(self) -> Any:
        return super().is_due()


class OwnChanges(PeriodicTasks):
    class Meta:
        proxy = True
        app_label = "elsewhere"


class OwnModel(PeriodicTask):
    class Meta:
        proxy = True
        app_label = "elsewhere"


def sub(**members: Any) -> type[DatabaseScheduler]:
    return type("Sub", (DatabaseScheduler,), members)


REPLACED: dict[str, Any] = {
    "Entry": OwnEntry,
    "Model": OwnModel,
    "Changes": OwnChanges,
    "enabled_models": lambda self: list(self.enabled_models_qs()),
    "enabled_models_qs": lambda self: PeriodicTask.objects.filter(enabled=True).exclude(name="not mine"),
    "all_as_schedule": lambda self: DatabaseScheduler.all_as_schedule(self),
    "is_due": lambda self, entry: entry.is_due(),
    "tick": lambda self: DatabaseScheduler.tick(self),
    "schedule_changed": lambda self: DatabaseScheduler.schedule_changed(self),
    "reserve": lambda self, entry: DatabaseScheduler.reserve(self, entry),
    "sync": lambda self: DatabaseScheduler.sync(self),
}


@pytest.mark.parametrize("hook", REPLACED)
def test_a_replaced_part_means_classic_mode_which_says_so_and_runs(
    make_now: Make, hook: str, caplog: pytest.LogCaptureFixture
) -> None:
    one = task("one", last_run_at=LONG_AGO, args=[1])
    before = datetime.now(UTC)
    scheduler = make_now(sub(**{hook: REPLACED[hook]}))
    assert scheduler.classic == [hook] and hook in scheduler.info
    (line,) = [record.getMessage() for record in caplog.records if "classic mode" in record.getMessage()]
    assert hook in line and "ledger" in line
    while scheduler.tick() == 0:
        pass
    ((name, args, _),) = waiting()
    assert (name, args) == ("one", [1])
    scheduler.sync()
    one.refresh_from_db()
    assert one.total_run_count == 1 and to_utc(one.last_run_at) >= before
    assert not Occurrence.objects.exists() and not TaskState.objects.exists()


def test_a_patched_entry_means_classic_mode_too(make_now: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelEntry, "is_due", OwnEntry.is_due)
    assert make_now().classic == ["ModelEntry.is_due"]
    monkeypatch.undo()
    assert make_now().classic == []


def test_what_is_no_part_of_the_scheduler_changes_nothing(make_now: Make) -> None:
    kind = type("Sub", (DatabaseScheduler,), {"mine": 1, "max_interval": 2, "setup_schedule": lambda self: None})
    assert make_now(kind).classic == []


LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
Classic = sub(enabled_models=lambda self: self.enabled_models_qs())


def test_a_one_off_runs_once_and_hides_no_other(make_now: Make) -> None:
    once = task("once", clocked=clocked(LONG_AGO))
    also = task("also", clocked=clocked(LONG_AGO))
    task("over", interval=every(1), expires=LONG_AGO)
    task("one", last_run_at=LONG_AGO)
    scheduler = make_now(Classic)
    assert sorted(drive(scheduler)) == ["also", "once", "one"]
    assert drive(scheduler) == []
    for each in (once, also):
        each.refresh_from_db()
        assert (each.enabled, each.total_run_count) == (False, 1)
    scheduler.close()
    assert drive(make_now(Classic)) == []


def test_an_entry_that_puts_itself_off_hides_no_other(make_now: Make) -> None:
    class PutOff(ModelEntry):
        def is_due(self) -> Any:
            if self.name == "other":
                return super().is_due()
            asked.append(1)
            return schedstate(False, 3600 if len(asked) > 5 else 0)

    asked: list[int] = []
    task("off")
    task("other", interval=every(1), last_run_at=datetime.now(UTC))
    scheduler = make_now(sub(Entry=PutOff))
    eventually(lambda: scheduler.tick() is not None and waiting(), 20, "the other")


def test_sees_a_change_at_once_and_leaves_no_hints(make_now: Make) -> None:
    scheduler = make_now(Classic, max_interval=0.000_001)
    assert drive(scheduler) == []
    added = task("added", last_run_at=LONG_AGO)
    assert Change.objects.exists()
    assert drive(scheduler) == ["added"]
    assert not Change.objects.exists()
    added.delete()
    assert drive(scheduler) == [] and "added" not in scheduler.schedule


def test_an_edit_of_a_task_that_ran_is_kept(make_now: Make) -> None:
    one = task("one", last_run_at=LONG_AGO)
    scheduler = make_now(Classic)
    assert drive(scheduler) == ["one"]
    PeriodicTask.objects.filter(pk=one.pk).update(description="edited", queue="other")
    scheduler.close()
    one.refresh_from_db()
    assert (one.description, one.queue, one.total_run_count) == ("edited", "other", 1)


def test_stores_the_entries_of_the_settings_when_it_is_made(make_now: Make, declared: dict[str, Any]) -> None:
    declared["one"] = {"task": "tests.project.tasks.add", "schedule": 60, "args": [1, 2]}
    make_now(Classic, lazy=True)
    assert not PeriodicTask.objects.filter(name="one").exists()
    make_now(Classic)
    assert PeriodicTask.objects.filter(name="one").exists()
