"""onebeat in Celery's own places: `worker -B`, beat's banner, `inspect ping`; and a person's open transaction."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path

import celery.beat
import pytest

from tests.engine.fleet import BEAT, LIMIT, Fleet, Place, Spawn, disable, fleets, make_every_second, make_one_offs
from tests.processes import eventually, run_python
from tests.project.tasks import read_log
from tests.scratch import Templates

TASKS = "django_celery_beat_periodictask"

pytestmark = [pytest.mark.broker, pytest.mark.timeout(200)]

NOWHERE = {
    "ONEBEAT_TEST_DB": json.dumps({"ENGINE": "django.db.backends.sqlite3", "NAME": "/nowhere/at/all.sqlite3"}),
    "ONEBEAT_TEST_BROKER": "redis://127.0.0.1:1/0",
}


def make_recorded(count: int) -> None:
    from django.utils import timezone

    from onebeat.models import ClockedSchedule, PeriodicTask

    now, _ = ClockedSchedule.objects.get_or_create(clocked_time=timezone.now())
    for number in range(count):
        PeriodicTask.objects.create(
            name=f"run {number}", task="tests.project.tasks.record", args=f"[{number}]", clocked=now, one_off=True
        )


@pytest.mark.parametrize("pool", ["solo", "prefork"])
def test_a_worker_with_beat_inside(templates: Templates, spawn: Spawn, tmp_path: Path, pool: str) -> None:
    """It sends, runs what it sent, records what became of it, and stops clean on one SIGTERM. (A worker's own -S is
    another option.)
    """
    log = tmp_path / "ran"
    worker = ("-m", "celery", "-A", "tests.project.celery", "worker", "-B", "--scheduler", "onebeat")
    with fleets(templates, spawn, Place("postgresql", "redis")) as (fleet,):
        fleet.settings = {"lease_seconds": 10 * LIMIT}
        env = fleet.environment(ONEBEAT_TEST_LOG=str(log))
        fleet.running.append(spawn(env, *worker, "-P", pool, "-c", "1", "--without-mingle", "--without-gossip"))
        fleet.wait_able()
        fleet.make(make_recorded, 20)
        eventually(lambda: len(read_log(log)) >= 20, LIMIT, "the tasks to run")
        eventually(lambda: fleet.count("state = 'succeeded'") == 20, LIMIT, "the ledger")
        assert fleet.finished(20)
        assert not fleet.count("sent_at IS NULL OR duplicate_deliveries <> 0 OR attempt <> 0")
        assert sorted(line["key"] for line in read_log(log)) == list(range(20))
        assert {line["id"] for line in read_log(log)} == {row.message_id for row in fleet.ledger()}
        print(f"{pool}: stopped in {fleet.stop():.2f} s")
        assert not fleet.query("SELECT id FROM onebeat_beat WHERE stopped_at IS NULL"), "beat did not say goodbye"


def banner() -> list[str]:
    """What Celery does with a scheduler that is not to run, and one that never ticks."""
    from celery.apps.beat import Beat

    from onebeat.celery.beat import Scheduler
    from tests.project.celery import app

    beat = Beat(app=app, scheduler="onebeat", loglevel="INFO")
    beat.init_loader()
    text = beat.startup_info(beat.Service(app=app, scheduler_cls="onebeat"))
    never = Scheduler(app)
    never.close()
    never.close()
    return [text, never.info]


def test_lazy_touches_nothing() -> None:
    """Neither the banner nor a scheduler that never ticks asks a database or a broker that are not there."""
    text, info = run_python(NOWHERE, banner)
    assert "onebeat.celery.beat.Scheduler" in text
    assert info in text


def ping(destination: str) -> list[dict[str, object]]:
    from tests.project.celery import app

    answer: list[dict[str, object]] = app.control.ping(destination=[destination], timeout=5)
    return answer


@pytest.mark.skipif(not hasattr(celery.beat, "BeatPidbox"), reason="this Celery's beat has no remote control")
def test_beat_answers_inspect_ping(templates: Templates, spawn: Spawn) -> None:
    """Celery's beat goes silent when a tick is late: neither idle nor with thousands due is it so."""
    with fleets(templates, spawn, Place("postgresql", "redis")) as (fleet,):
        fleet.settings = {"plain_below": 100_000}
        limit = json.dumps({"CELERY_BEAT_REMOTE_CONTROL_MAX_TICK_AGE": 8})
        env = fleet.environment(ONEBEAT_TEST_CELERY=limit)
        fleet.running.append(spawn(env, *BEAT, "--enable-remote-control", "--hostname", "here"))
        fleet.wait_able()
        answer = [{"celerybeat@here": {"ok": "pong"}}]
        assert fleet.make(ping, "celerybeat@here") == answer
        fleet.make(make_one_offs, "once", 6000, 0.0)
        eventually(partial(fleet.count, "state = 'claimed'"), LIMIT, "the first claim")
        assert fleet.make(ping, "celerybeat@here") == answer
        print(f"{fleet.count('1 = 1')} of 6000 were claimed when it answered")
        fleet.stop()


def test_a_persons_open_transaction_stops_nobody(templates: Templates, spawn: Spawn, tmp_path: Path) -> None:
    """While somebody edits a task and adds another, that task and all others are sent, second after second."""
    places = Place("postgresql", "redis", 2), Place("mariadb", "redis", 2)
    with fleets(templates, spawn, *places) as found:
        for fleet in found:
            fleet.start_all()
        for fleet in found:
            fleet.wait_able()
            every = fleet.make(make_every_second, "every second", 3)
            eventually(partial(fleet.has_sent, every[0], 2), LIMIT, "the first runs")
            folder = tmp_path / str(fleet.place)
            folder.mkdir()
            person = spawn(fleet.environment(), "-m", "tests.engine.fleet", "hold", every[0], str(folder))
            eventually((folder / "held").exists, LIMIT, "a person's lock")
            _goes_on_by(fleet, every)
            (folder / "let go").touch()
            assert person.wait(LIMIT) == 0
            eventually(partial(fleet.has_sent, "new", 2), LIMIT, "the task that was added")
            fleet.make(disable, *every, "new")
            eventually(partial(fleet.finished, 1), LIMIT, f"the end on {fleet.place}")
            fleet.stop()
            assert not fleet.differences(every=[*every, "new"])
            counted = dict(fleet.query(f"SELECT name, total_run_count FROM {TASKS}"))
            assert counted == {name: len(fleet.sent(name)) for name in counted}


def _goes_on_by(fleet: Fleet, every: list[str]) -> None:
    """Three more runs of each, in about three seconds."""
    before = {name: len(fleet.sent(name)) for name in every}
    began = time.monotonic()
    for name in every:
        eventually(partial(fleet.has_sent, name, before[name] + 3), LIMIT, f"{name} on {fleet.place}")
    took = time.monotonic() - began
    print(f"{fleet.place}: three runs of each in {took:.1f} s past a person's lock")
