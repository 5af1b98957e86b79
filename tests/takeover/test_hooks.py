"""`DatabaseScheduler` and `ModelEntry` with what people override in them: each hook is asked, or named as not asked."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
from celery import beat as celery_beat
from celery.schedules import crontab, schedstate, schedule, solar
from django.db import connection
from django.test.utils import CaptureQueriesContext
from kombu.exceptions import OperationalError
from kombu.utils.imports import symbol_by_name

from onebeat.celery.beat import Scheduler
from onebeat.compat.schedulers import DatabaseScheduler, ModelEntry
from onebeat.core import clock
from onebeat.models import Beat, Change, Occurrence, PeriodicTask, PeriodicTasks, TaskState
from onebeat.models.instants import from_utc, to_utc
from tests import services
from tests.engine.kit import START, at, clocked, cron, every
from tests.processes import eventually, run_python
from tests.project.celery import app
from tests.scratch import Post, Scratch, Templates

Make = Callable[..., Any]
SCHEDULERS = ["django_celery_beat.schedulers:DatabaseScheduler", "onebeat.celery.beat:Scheduler"]


@pytest.fixture
def make_now(transactional_db: None) -> Iterator[Make]:
    """Makes schedulers, which are closed in the end. The queue of the broker is empty."""
    made: list[Any] = []

    def scheduler(kind: type = DatabaseScheduler, **kwargs: Any) -> Any:
        made.append(kind(app=app, **kwargs))
        return made[-1]

    waiting()
    yield scheduler
    for one in made:
        one.close()


@pytest.fixture
def make(make_now: Make) -> Iterator[Make]:
    """The same at START, where the clock stands."""
    with clock.pin(START):
        yield make_now


@pytest.fixture
def declared() -> Iterator[dict[str, Any]]:
    """CELERY_BEAT_SCHEDULE of the project."""
    before = app.conf.beat_schedule
    app.conf.beat_schedule = {}
    yield app.conf.beat_schedule
    app.conf.beat_schedule = before


def task(name: str, **fields: Any) -> PeriodicTask:
    """A task that workers elsewhere have registered, every hour unless a schedule is given."""
    if not {"interval", "crontab", "clocked"} & fields.keys():
        fields["interval"] = every(3600)
    fields = {key: from_utc(value) if isinstance(value, datetime) else value for key, value in fields.items()}
    return PeriodicTask.objects.create(name=name, task="elsewhere.run", one_off="clocked" in fields, **fields)


def waiting() -> list[tuple[str, list[Any], dict[str, Any]]]:
    """Take what is in the queue: (name of the periodic task, arguments, headers)."""
    found = []
    with app.connection_for_read() as link:
        queue = link.SimpleQueue("celery")
        while queue.qsize():
            message = queue.get(timeout=1)
            message.ack()
            found.append((message.headers["periodic_task_name"], message.payload[0], message.headers))
        queue.close()
    return found


def run(scheduler: Any, seconds: int) -> list[str]:
    """Tick every second for so long; returns the names of what was sent."""
    for _ in range(seconds):
        clock.move(clock.host_now() + timedelta(seconds=1))
        scheduler.tick()
    return [name for name, _, _ in waiting()]


# -- on the engine ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEDULERS)
def test_both_names_run_the_engine(make: Make, name: str) -> None:
    scheduler = make(symbol_by_name(name))
    scheduler.tick()
    one = task("one", interval=every(2), args=[1, 2])
    scheduler.tick()
    assert run(scheduler, 5) == ["one", "one"]
    assert Occurrence.objects.filter(task_id=one.pk, state="sent").count() == 2
    assert TaskState.objects.filter(pk=one.pk).exists() and Beat.objects.exists()


class Marking(DatabaseScheduler):
    """What people do most: look at each entry on its way out, and add something."""

    seen: ClassVar[list[Any]] = []

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        self.seen.append(entry)
        if not entry.name.startswith("held"):
            super().apply_entry(entry, producer=producer)

    def apply_async(self, entry: Any, producer: Any = None, advance: bool = True, **kwargs: Any) -> Any:
        entry.options["headers"]["tenant"] = entry.model.description
        entry.args = [*entry.args, 3]
        return super().apply_async(entry, producer=producer, advance=advance, **kwargs)


def test_the_hooks_that_decide_what_is_sent_are_asked(make: Make) -> None:
    Marking.seen.clear()
    scheduler = make(Marking)
    scheduler.tick()
    one = task("one", interval=every(5), args=[1], headers={"own": "x"}, description="here", priority=3)
    task("held back", interval=every(5))
    scheduler.tick()
    clock.move(at(5))
    scheduler.tick()
    ((name, args, headers),) = waiting()
    assert (name, args, headers["tenant"], headers["own"]) == ("one", [1, 3], "here", "x")
    assert headers["id"] == str(Occurrence.objects.get(task_id=one.pk).celery_task_id)
    entry = next(entry for entry in Marking.seen if entry.name == "one")
    assert (entry.model, entry.task, entry.schedule) == (one, one.task, schedule(timedelta(seconds=5)))
    assert scheduler.classic == []
    # A hook that sends nothing has decided.
    assert set(Occurrence.objects.values_list("task_name", "state")) == {("one", "sent"), ("held back", "sent")}


def test_many_at_once_go_through_the_hook_one_by_one(make: Make) -> None:
    Marking.seen.clear()
    scheduler = make(Marking)
    scheduler.tick()
    instant = clocked(at(3))
    for number in range(60):
        task(f"t{number}", clocked=instant)
    assert len(run(scheduler, 4)) == 60
    with CaptureQueriesContext(
        connection,
    ) as queries:
        Marking.seen[0].model.clocked.clocked_time  # noqa: B018 - read with the task
    assert len(Marking.seen) == 60 and len(queries) == 0


@pytest.mark.parametrize("kind", [DatabaseScheduler, Scheduler])
def test_a_patch_of_celery_s_own_method_is_asked(make: Make, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    original = celery_beat.Scheduler.apply_entry

    def patched(*args: Any, **kwargs: Any) -> Any:
        _, entry = args  # as monitoring libraries do
        entry.options["headers"] = {**entry.options.pop("headers", {}), "monitor": str(entry.schedule)}
        return original(*args, **kwargs)

    patched.__wrapped__ = original  # type: ignore[attr-defined]
    monkeypatch.setattr(celery_beat.Scheduler, "apply_entry", patched)
    scheduler = make(kind)
    scheduler.tick()
    task("one", interval=every(2))
    task("last friday", crontab=cron("*", day_of_week="fri#L"))
    scheduler.tick()
    clock.move(at(2))
    scheduler.tick()
    ((name, _, headers),) = waiting()
    assert (name, headers["monitor"]) == ("one", "<freq: 2.00 seconds>")


class Failing(DatabaseScheduler):
    error: ClassVar[Exception | None] = None

    def send_task(self, *args: Any, **kwargs: Any) -> Any:
        if self.error is not None and kwargs["headers"]["periodic_task_name"] == "one":
            raise self.error
        return super().send_task(*args, **kwargs)


def test_a_broker_that_fails_inside_a_hook_loses_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = make(Failing)
    scheduler.tick()
    task("one", clocked=clocked(at(2)))
    monkeypatch.setattr(Failing, "error", OperationalError("the broker is away"))
    assert run(scheduler, 3) == []
    assert Occurrence.objects.get().state == "claimed"
    monkeypatch.setattr(Failing, "error", None)
    assert run(scheduler, 10) == ["one"]
    assert Occurrence.objects.get().state == "sent"


def test_a_message_that_a_hook_cannot_send_is_set_aside(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = make(Failing)
    scheduler.tick()
    task("one", clocked=clocked(at(2)))
    monkeypatch.setattr(Failing, "error", ValueError("no such tenant"))
    task("other", clocked=clocked(at(2)))
    assert run(scheduler, 3) == ["other"]
    one = Occurrence.objects.get(task_name="one")
    assert (one.state, one.reason, one.detail) == ("skipped", "refused", "ValueError: no such tenant")


@pytest.fixture
def sqlite(templates: Templates) -> Iterator[Scratch]:
    """A migrated database for other processes."""
    kind = next(kind for kind in services.databases() if kind.vendor == "sqlite")
    with Scratch.open(kind, templates.of(kind)) as scratch:
        yield scratch


def under_sentry(path: str) -> dict[str, Any]:
    import sentry_sdk
    from sentry_sdk.integrations.celery import CeleryIntegration

    sent: list[Any] = []

    class Keep(sentry_sdk.transport.Transport):
        def capture_envelope(self, envelope: Any) -> None:
            sent.extend(item.payload.json for item in envelope.items if item.headers["type"] == "check_in")

    sentry_sdk.init(
        dsn="https://key@localhost/1",
        transport=Keep,
        traces_sample_rate=1.0,
        integrations=[CeleryIntegration(monitor_beat_tasks=True)],
    )
    with clock.pin(START):
        scheduler = symbol_by_name(path)(app=app)
        scheduler.tick()
        task("watched", interval=every(60))
        scheduler.tick()
        clock.move(at(60))
        scheduler.tick()
        scheduler.close()
    ((name, _, headers),) = waiting()
    monitor = {key: value for key, value in headers.items() if key.startswith("sentry-monitor")}
    return {"name": name, "headers": monitor, "check_ins": sent, "traced": "sentry-trace" in headers}


@pytest.mark.parametrize("path", SCHEDULERS)
def test_sentry_s_monitors_work(sqlite: Scratch, path: str) -> None:
    pytest.importorskip("sentry_sdk")
    seen = run_python({**sqlite.env, "PYTHONPATH": os.pathsep.join(sys.path)}, under_sentry, path)
    (check_in,) = seen["check_ins"]
    assert (seen["name"], seen["traced"]) == ("watched", True)
    assert (check_in["monitor_slug"], check_in["status"]) == ("watched", "in_progress")
    assert check_in["monitor_config"]["schedule"] == {"type": "interval", "value": 1, "unit": "minute"}
    assert seen["headers"]["sentry-monitor-slug"] == "watched"
    assert seen["headers"]["sentry-monitor-check-in-id"] == check_in["check_in_id"]


def add_one() -> None:
    task("one", interval=every(1))


@pytest.mark.broker
def test_celery_beat_finds_it_by_the_old_name(sqlite: Scratch, broker: Post, spawn: Callable[..., Any]) -> None:
    run_python(sqlite.env, add_one)
    command = ["-m", "celery", "-A", "tests.project.celery", "beat", "-S", SCHEDULERS[0]]
    process = spawn({**sqlite.env, **broker.env}, *command)
    sent: list[Any] = []
    eventually(lambda: sent.extend(broker.drain()) or len(sent) >= 2, 60, "two messages")
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert {message.headers["periodic_task_name"] for message in sent} == {"one"}
    assert len({message.headers["id"] for message in sent}) == len(sent)


# -- made, and only asked ---------------------------------------------------------------------------------------------


def test_making_one_touches_nothing(make: Make, declared: dict[str, Any]) -> None:
    declared["one"] = {"task": "a.b", "schedule": 5}
    with CaptureQueriesContext(connection) as queries:
        make(lazy=True)
        make()
        make(Marking)
        assert make(lazy=True).info
    assert len(queries) == 0


def test_it_answers_and_writes_nothing(make: Make) -> None:
    run_at = START - timedelta(minutes=10)
    task("due", interval=every(60), last_run_at=run_at)
    task("last friday", crontab=cron("0", "9", day_of_week="fri#L"), last_run_at=run_at)
    task("off", interval=every(60), enabled=False)
    task("later", interval=every(60), start_time=at(86_400))
    task("over", interval=every(60), expires=at(-60))
    task("ran", clocked=clocked(at(-60)), total_run_count=1)
    with CaptureQueriesContext(connection) as queries:
        scheduler = make()
        entries = scheduler.all_as_schedule()
        answers = {name: entry.is_due() for name, entry in entries.items()}
    assert {name: bool(due) for name, (due, _) in answers.items()} == {
        "due": True, "last friday": False, "later": False, "over": False, "ran": False,
    }  # fmt: skip
    assert answers["later"][1] == 86_400
    # 2026-03-27 09:00 is the last Friday of that month.
    assert answers["last friday"][1] == (datetime(2026, 3, 27, 9, tzinfo=UTC) - START).total_seconds()
    assert [query for query in queries if not query["sql"].startswith("SELECT")] == []
    assert not Beat.objects.exists() and not TaskState.objects.exists()


def test_a_row_that_no_entry_can_be_made_from_hides_no_other(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    task("good")
    bad = task("bad")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_celery_beat_periodictask SET args = '{' WHERE id = %s", [bad.pk])
    assert list(make().all_as_schedule()) == ["good"]
    assert "'bad'" in caplog.text


# -- CELERY_BEAT_SCHEDULE ---------------------------------------------------------------------------------------------


def stored(make: Make) -> dict[str, PeriodicTask]:
    make().tick()
    return {row.name: row for row in PeriodicTask.objects.all()}


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
    "countdown": {"options": {"countdown": 3}},
    "options.link": {"options": {"link": "x"}},
    "options.expires": {"options": {"expires": 1.5}},
    "options.compression": {"options": {"queue": "q", "compression": "zlib"}},
    "relative": {"relative": True},
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


# -- classic mode -----------------------------------------------------------------------------------------------------


class OwnEntry(ModelEntry):
    def is_due(self) -> Any:
        return super().is_due()


class OwnChanges(PeriodicTasks):
    class Meta:
        proxy = True
        app_label = "shop"


class OwnModel(PeriodicTask):
    class Meta:
        proxy = True
        app_label = "shop"


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


def drive(scheduler: Any) -> list[str]:
    """Tick until it wants to sleep; returns the names of what was sent."""
    for _ in range(50):
        if scheduler.tick() > 0:
            return [name for name, _, _ in waiting()]
    raise AssertionError("it never sleeps")


def test_classic_a_one_off_runs_once_and_hides_no_other(make_now: Make) -> None:
    once = task("once", clocked=clocked(LONG_AGO))
    task("over", interval=every(1), expires=LONG_AGO)
    task("one", last_run_at=LONG_AGO)
    scheduler = make_now(Classic)
    assert sorted(drive(scheduler)) == ["once", "one"]
    assert drive(scheduler) == []
    once.refresh_from_db()
    assert (once.enabled, once.total_run_count) == (False, 1)
    scheduler.close()
    assert drive(make_now(Classic)) == []


def test_classic_an_entry_that_puts_itself_off_hides_no_other(make_now: Make) -> None:
    class PutOff(ModelEntry):
        def is_due(self) -> Any:
            if self.name == "other":
                return super().is_due()
            asked.append(1)
            return schedstate(False, 3600 if len(asked) > 1 else 0)

    asked: list[int] = []
    task("off")
    scheduler = make_now(sub(Entry=PutOff))
    assert drive(scheduler) == []
    task("other", last_run_at=LONG_AGO)
    assert drive(scheduler) == ["other"]


def test_classic_sees_a_change_at_once_and_leaves_no_hints(make_now: Make) -> None:
    scheduler = make_now(Classic, max_interval=0.000_001)
    assert drive(scheduler) == []
    added = task("added", last_run_at=LONG_AGO)
    assert Change.objects.exists()
    assert drive(scheduler) == ["added"]
    assert not Change.objects.exists()
    added.delete()
    assert drive(scheduler) == [] and "added" not in scheduler.schedule


def test_classic_an_edit_of_a_task_that_ran_is_kept(make_now: Make) -> None:
    one = task("one", last_run_at=LONG_AGO)
    scheduler = make_now(Classic)
    assert drive(scheduler) == ["one"]
    PeriodicTask.objects.filter(pk=one.pk).update(description="edited", queue="other")
    scheduler.close()
    one.refresh_from_db()
    assert (one.description, one.queue, one.total_run_count) == ("edited", "other", 1)


def test_classic_stores_the_entries_of_the_settings_when_it_is_made(make_now: Make, declared: dict[str, Any]) -> None:
    declared["one"] = {"task": "tests.project.tasks.add", "schedule": 60, "args": [1, 2]}
    make_now(Classic, lazy=True)
    assert not PeriodicTask.objects.filter(name="one").exists()
    make_now(Classic)
    assert PeriodicTask.objects.filter(name="one").exists()
