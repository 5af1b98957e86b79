"""The harness itself: a broken one would make every other suite pass."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import servers, services
from tests.databases import Database, admin_connection
from tests.processes import ROOT, environment, eventually, processes, run_python
from tests.project.tasks import read_log
from tests.scratch import Post, Scratch

#: They test the tests.
pytestmark = pytest.mark.long


def answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def count_rows(table: str) -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM {table}")
        return int(cursor.fetchone()[0])


def insert(index: int, fail_at: int) -> dict[str, Any]:
    from django.db import connection

    if index == fail_at:
        raise RuntimeError(f"process {index} was told to")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO races (who) VALUES (%s)", [index])
    return {"index": index, "pid": os.getpid()}


def send_record(key: str) -> str:
    from tests.project.tasks import record

    return str(record.apply_async(args=(key,), headers={"color": "red"}).id)


def send_record_locally(key: str) -> None:
    from tests.project.tasks import record

    record.apply(args=(key,), task_id="the-id")


def vendor_and_app() -> list[str]:
    from celery import current_app
    from django.conf import settings
    from django.db import connection

    return [connection.vendor, str(current_app.main), settings.TIME_ZONE, str(settings.USE_TZ)]


def test_a_database_is_made_copied_and_dropped(blank_database: Scratch) -> None:
    kind = blank_database.kind
    connection = blank_database.connect()
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE races (who INTEGER)")
        cursor.execute("INSERT INTO races (who) VALUES (%s)", [7])
    connection.close()
    with Scratch.open(kind, blank_database.name) as copy:
        with copy.connect().cursor() as cursor:
            cursor.execute("SELECT who FROM races")
            assert [who for (who,) in cursor.fetchall()] == [7]
            cursor.execute("DELETE FROM races")
        # With a transaction still open, as a process that was killed may leave it.
        copy.connect().set_autocommit(False)
    with blank_database.connect().cursor() as cursor:
        cursor.execute("SELECT who FROM races")
        assert [who for (who,) in cursor.fetchall()] == [7]
    if kind.vendor == "sqlite":
        assert not Path(copy.name).exists()
    else:
        with pytest.raises(Exception, match=copy.name):
            admin_connection(kind.url, copy.name)


def test_processes_race_on_one_database_and_report(blank_database: Scratch) -> None:
    with blank_database.connect().cursor() as cursor:
        cursor.execute("CREATE TABLE races (who INTEGER)")
    outcomes = processes(6, blank_database.env, insert, 4)
    assert "process 4 was told to" in outcomes.pop(4).error
    assert [(each.value["index"], each.error) for each in outcomes] == [(i, "") for i in (0, 1, 2, 3, 5)]
    assert len({each.value["pid"] for each in outcomes}) == 5
    assert run_python(blank_database.env, count_rows, "races") == 5


def test_a_child_that_dies_is_reported(blank_database: Scratch) -> None:
    with pytest.raises(pytest.fail.Exception, match="no_such_module"):
        run_python(blank_database.env, "no_such_module:f")
    assert [each.error for each in processes(2, blank_database.env, "os:_exit")] == [
        "the process died without an answer"
    ] * 2


def test_settings_follow_the_environment(blank_database: Scratch) -> None:
    env = {**blank_database.env, "ONEBEAT_TEST_TIME_ZONE": "Europe/Paris", "ONEBEAT_TEST_USE_TZ": "0"}
    expected = [blank_database.vendor, "tests.project", "Europe/Paris", "False"]
    assert run_python(env, vendor_and_app) == expected


@pytest.mark.broker
def test_a_queue_is_drained_in_order_and_is_ours_alone(broker: Post) -> None:
    assert broker.drain() == []
    ids = [run_python(broker.env, send_record, key) for key in ("a", "b")]
    with Post.open(broker.kind) as other:
        assert other.drain() == []
    messages = broker.drain()
    assert [message.headers["id"] for message in messages] == ids
    assert [message.body[0] for message in messages] == [["a"], ["b"]]
    assert messages[0].headers["color"] == "red"
    assert broker.drain() == []


@pytest.mark.django_db
def test_tests_in_this_process_are_on_the_database_asked_for() -> None:
    from django.db import connection

    asked = os.environ.get("ONEBEAT_TEST_DB") or "sqlite"
    if asked in services.VENDORS:
        assert connection.vendor == services.VENDORS[asked]
    assert count_rows("shop_reminder") == 0


def test_record_appends_a_line(tmp_path: Path) -> None:
    env = {"ONEBEAT_TEST_LOG": str(tmp_path / "log")}
    for key in ("one", "two"):
        run_python(env, send_record_locally, key)
    assert [(line["key"], line["id"]) for line in read_log(tmp_path / "log")] == [
        ("one", "the-id"),
        ("two", "the-id"),
    ]


def test_a_migrated_database_has_the_tables(database: Scratch) -> None:
    assert run_python(database.env, count_rows, "django_celery_beat_periodictask") == 0
    assert run_python(database.env, count_rows, "shop_reminder") == 0


def test_eventually_fails_with_the_name_of_what_it_waited_for() -> None:
    seen = iter([0, 0, 3])
    assert eventually(lambda: next(seen), 5, "a number") == 3
    with pytest.raises(pytest.fail.Exception, match="the moon"):
        eventually(lambda: False, 0.05, "the moon")


def start_redis_and_say_where() -> None:
    server = servers.redis()
    server.start(services.probe)
    print(server.url.rsplit(":", 1)[1].split("/")[0], server.directory, flush=True)
    signal.pause()


def test_servers_do_not_outlive_a_killed_session() -> None:
    code = "from tests.test_services import start_redis_and_say_where as f; f()"
    try:
        servers.program("redis-server", "valkey-server")
    except servers.CannotStart as why:
        pytest.skip(str(why))
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=environment({}), stdout=subprocess.PIPE
    ) as session:
        assert session.stdout is not None
        port, directory = session.stdout.readline().decode().split()
        assert answers(int(port))
        session.kill()
    eventually(lambda: not answers(int(port)) and not Path(directory).exists(), 20, "the server and its files to go")


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_a_stopped_server_starts_again_with_its_data(name: str) -> None:
    try:
        server = services.THROWAWAY[name]()
        server.start(services.probe)
    except servers.CannotStart as why:
        pytest.skip(str(why))
    try:
        kind = Database(name, services.VENDORS[name], server.url)
        database = kind.create_database()
        server.stop()
        assert not answers(kind.settings_dict(database)["PORT"])
        server.start(services.probe)
        admin_connection(kind.url, database).close()
    finally:
        server.close()
    assert not server.directory.exists()


def test_a_missing_service_is_an_error_in_ci_only() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/test_services.py",
        "-k",
        "moon or waited",
    ]
    env = environment({services.variable(name): "" for name in services.SERVERS})
    env.pop("CI", None)
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    in_ci = subprocess.run(command, cwd=ROOT, env={**env, "CI": "1"}, capture_output=True, text=True, check=False)
    assert in_ci.returncode == pytest.ExitCode.USAGE_ERROR
    assert "rabbitmq: ONEBEAT_TEST_RABBITMQ_URL is empty" in in_ci.stdout + in_ci.stderr
