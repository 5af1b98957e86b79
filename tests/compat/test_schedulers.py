"""`DatabaseScheduler` and `ModelEntry` with what people override in them: each hook is asked, or named as not asked."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, ClassVar

import pytest
from celery import beat as celery_beat
from celery.schedules import schedule
from django.db import connection
from django.test.utils import CaptureQueriesContext
from kombu.exceptions import OperationalError
from kombu.utils.imports import symbol_by_name

from onebeat.celery.beat import Scheduler
from onebeat.compat.schedulers import DatabaseScheduler
from onebeat.core import clock
from onebeat.core.headers import TASK_HEADER
from onebeat.models import Beat, Occurrence, TaskState
from tests import services
from tests.compat.beating import run, task, waiting
from tests.engine.kit import START, at, clocked, cron, every
from tests.processes import eventually, run_python
from tests.project.celery import app
from tests.scratch import Post, Scratch, Templates

Make = Callable[..., Any]
SCHEDULERS = ["django_celery_beat.schedulers:DatabaseScheduler", "onebeat.celery.beat:Scheduler"]


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


class Proxy:
    """Wraps a function and looks like it in every other way."""

    def __init__(self, wrapper: Any, wrapped: Any) -> None:
        self.wrapper, self.wrapped = wrapper, wrapped

    def __get__(self, instance: Any, owner: Any) -> Any:
        return partial(self.wrapper, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)


@pytest.mark.parametrize("how", ["function", "proxy"])
@pytest.mark.parametrize("kind", [DatabaseScheduler, Scheduler])
def test_a_patch_of_celery_s_own_method_is_asked(
    make: Make, kind: type, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = celery_beat.Scheduler.apply_entry

    def patched(*args: Any, **kwargs: Any) -> Any:
        _, entry = args  # as monitoring libraries do
        entry.options["headers"] = {**entry.options.pop("headers", {}), "monitor": str(entry.schedule)}
        return original(*args, **kwargs)

    monkeypatch.setattr(
        celery_beat.Scheduler, "apply_entry", patched if how == "function" else Proxy(patched, original)
    )
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


def test_what_a_hook_raises_is_tried_again_and_holds_up_no_other(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = make(Failing)
    scheduler.tick()
    task("one", clocked=clocked(at(2)))
    monkeypatch.setattr(Failing, "error", ValueError("no such tenant"))
    task("other", clocked=clocked(at(2)))
    assert run(scheduler, 3) == ["other"]
    one = Occurrence.objects.get(task_name="one")
    assert (one.state, one.detail) == ("claimed", "publishing failed: ValueError: no such tenant")
    monkeypatch.setattr(Failing, "error", None)
    assert run(scheduler, 10) == ["one"]


class ForEachTenant(DatabaseScheduler):
    """One entry, several messages, as in projects with a schema for each tenant."""

    fails_at: ClassVar[str] = ""

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        for tenant in ("a", "b", "c"):
            if tenant == self.fails_at:
                raise OperationalError("the broker is away")
            entry.options["headers"]["tenant"] = tenant
            self.apply_async(entry, producer=producer, advance=False)


class InOne(DatabaseScheduler):
    """The same one step later."""

    def apply_async(self, entry: Any, producer: Any = None, advance: bool = True, **kwargs: Any) -> Any:
        for tenant in ("a", "b", "c"):
            entry.options["headers"]["tenant"] = tenant
            found = super().apply_async(entry, producer=producer, advance=advance, **kwargs)
        return found


@pytest.mark.parametrize("kind", [ForEachTenant, InOne])
def test_each_message_that_a_hook_makes_of_an_entry_has_its_own_id(
    make: Make, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = make(kind)
    scheduler.tick()
    one = task("one", clocked=clocked(at(2)))
    monkeypatch.setattr(ForEachTenant, "fails_at", "c")
    found: list[dict[str, Any]] = []
    for _ in range(12):  # also with copies, if the hook fails in the middle
        clock.move(clock.host_now() + timedelta(seconds=1))
        scheduler.tick()
        found += [headers for _, _, headers in waiting()]
        monkeypatch.undo()
    ids = {(headers["tenant"], headers["id"]) for headers in found}
    assert len(ids) == 3 and len({key for _, key in ids}) == 3
    assert ("a", str(Occurrence.objects.get(task_id=one.pk).celery_task_id)) in ids
    assert {headers["tenant"] for headers in found if TASK_HEADER in headers} == {"a"}


@pytest.fixture
def sqlite(templates: Templates) -> Iterator[Scratch]:
    """A migrated database for other processes."""
    kind = next(kind for kind in services.databases() if kind.vendor == "sqlite")
    with Scratch.open(kind, templates.of(kind)) as scratch:
        yield scratch


def under_sentry(path: str) -> dict[str, Any]:
    import sentry_sdk
    from sentry_sdk.integrations.celery import CeleryIntegration

    from onebeat.contrib.sentry import outbox

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
    outbox.goodbye()
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
