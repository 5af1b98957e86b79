"""A real worker, with processes of its own: what it records, and that the guard lets each attempt start once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.celery.desk import LIMIT, Desk, desk
from tests.processes import eventually
from tests.scratch import Templates

pytestmark = [pytest.mark.broker, pytest.mark.timeout(200)]


@pytest.fixture(scope="module")
def at(templates: Templates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One worker for all the tests of this module."""
    folder = tmp_path_factory.mktemp("desk")
    with (
        desk(templates, folder, "redis", "postgresql", modules=["tests.celery.tasks"]) as made,
        made.worker("prefork"),
    ):
        yield made


def test_success(at: Desk) -> None:
    row = at.becomes(at.send("note", at.occurrence(), "good"), state="succeeded")
    assert (row["outcome"], row["attempt"], row["duplicate_deliveries"], row["error"]) == ("success", 0, 0, "")
    assert row["worker"] == "worker@here"
    assert row["sent_at"] <= row["started_at"] <= row["finished_at"]


def test_failure(at: Desk) -> None:
    row = at.becomes(at.send("boom", at.occurrence(), "bad"), state="failed")
    assert (row["outcome"], row["attempt"], row["error"]) == ("failure", 0, "RuntimeError: boom")


@pytest.mark.parametrize("number", [2, 12])
def test_copies_of_a_guarded_task_do_not_run(at: Desk, number: int) -> None:
    key = f"{number} copies"
    at.becomes(at.send("note", at.occurrence(), key, copies=number), state="succeeded", duplicate_deliveries=number - 1)
    assert at.ran(key) == 1


def test_copies_of_another_task_run_and_are_counted(at: Desk) -> None:
    at.becomes(at.send("plain", at.occurrence(), "unguarded", copies=2), state="succeeded", duplicate_deliveries=1)
    at.wait_ran("unguarded")
    eventually(lambda: at.ran("unguarded") == 2, LIMIT, "the copy to run")


def test_every_retry_runs_and_its_copies_do_not(at: Desk) -> None:
    one = at.send("retries", at.occurrence(), "again", copies=2)
    row = at.becomes(one, state="succeeded", attempt=2, duplicate_deliveries=1)
    assert row["outcome"] == "success"
    assert [line["retries"] for line in at.lines() if line["key"] == "again"] == [0, 1, 2]
    for number in range(3):
        at.send("retries", one, "again", retries=number)
    at.becomes(one, state="succeeded", attempt=2, duplicate_deliveries=4)
    assert at.ran("again") == 3


def test_automatic_retries(at: Desk) -> None:
    row = at.becomes(
        at.send("autoretries", at.occurrence(), "auto", copies=2), state="failed", attempt=1, duplicate_deliveries=1
    )
    assert (row["outcome"], row["error"]) == ("failure", "ValueError: never right")
    assert at.ran("auto") == 2


@pytest.mark.parametrize("hands_on", [False, True], ids=["plain", "headers handed on"])
def test_what_replaces_a_task_runs(at: Desk, hands_on: bool) -> None:
    """Under the same task id; also when it replaces by hand with the headers of the one it replaces."""
    key = f"replaced {hands_on}"
    row = at.becomes(
        at.send("replaces", at.occurrence(), key, hands_on, copies=2), state="succeeded", duplicate_deliveries=1
    )
    assert (row["outcome"], row["error"]) == ("ignored", "Ignore: Replaced by new task")
    at.wait_ran(f"{key} instead")
    assert (at.ran(key), at.ran(f"{key} instead")) == (1, 1)


@pytest.mark.parametrize("hands_on", [False, True], ids=["plain", "headers handed on"])
def test_what_a_task_calls_runs(at: Desk, hands_on: bool) -> None:
    """Chords, groups, chains and single calls from a body; the children are no copies of it."""
    key = f"fan {hands_on}"
    at.becomes(at.send("fans", at.occurrence(), key, hands_on, copies=2), state="succeeded", duplicate_deliveries=1)
    names = ["in chord 1", "in chord 2", "after chord", "in group 1", "in group 2", "in chain 1", "in chain 2", "alone"]
    children = [f"{key} {name}" for name in names]
    at.wait_ran(*children)
    lines = {line["key"]: line["header"] for line in at.lines() if line["key"] in children}
    assert [at.ran(child) for child in children] == [1] * 8
    if not hands_on:
        assert set(lines.values()) == {None}, "Celery hands the header on"


def test_callbacks_and_what_follows_in_a_chain(at: Desk) -> None:
    """Once each, although the message came twice."""
    link = at.app.signature("tests.celery.tasks.note", ("linked",), immutable=True)
    then = at.app.signature("tests.celery.tasks.note", ("next in chain",), immutable=True)
    one = at.send("note", at.occurrence(), "calls back", link=link, chain=[then], copies=2)
    at.becomes(one, state="succeeded", duplicate_deliveries=1)
    at.wait_ran("linked", "next in chain")
    assert [at.ran(key) for key in ("calls back", "linked", "next in chain")] == [1, 1, 1]


def test_a_task_gives_its_message_back(at: Desk) -> None:
    """The same attempt comes again, and runs."""
    row = at.becomes(at.send("requeues", at.occurrence(), "not yet"), state="succeeded")
    assert (at.ran("not yet"), row["attempt"], row["outcome"]) == (2, 0, "success")


def test_a_task_rejects_its_message(at: Desk) -> None:
    row = at.becomes(at.send("rejects", at.occurrence(), "never"), state="failed")
    assert (row["outcome"], "never" in row["error"]) == ("rejected", True)


def test_revoked_and_expired_never_start(at: Desk) -> None:
    revoked, expired = at.occurrence(), at.occurrence()
    at.app.control.broadcast("revoke", arguments={"task_id": revoked.id}, reply=True, limit=1, timeout=LIMIT)
    at.send("note", revoked, "revoked")
    at.send("note", expired, "expired", expires=datetime.now(UTC) - timedelta(hours=1))
    for one, outcome in ((revoked, "revoked"), (expired, "expired")):
        row = at.becomes(one, state="failed")
        assert (row["outcome"], row["started_at"]) == (outcome, None)
        assert at.ran(outcome) == 0


def test_a_revoked_copy_ends_nobody_else(at: Desk) -> None:
    at.hold()
    one = at.send("waits", at.occurrence(), "first")
    at.wait_ran("first")
    at.send("waits", one, "first", expires=datetime.now(UTC) - timedelta(hours=1))
    sentinel = at.send("note", at.occurrence(), "after the expired copy")
    at.becomes(sentinel, state="succeeded")
    assert at.row(one)["state"] == "started"
    at.let_go()
    at.becomes(one, state="succeeded")


def test_ends_that_the_main_process_tells(at: Desk) -> None:
    """Hard and soft time limit, a process that dies, one that is terminated."""
    at.hold()
    hard = at.send("waits", at.occurrence(), "hard", time_limit=1)
    soft = at.send("waits", at.occurrence(), "soft", soft_time_limit=1)
    for one in (hard, soft):
        assert "TimeLimitExceeded" in at.becomes(one, state="failed", outcome="timeout")["error"]
    dead = at.send("dies", at.occurrence(), "dead")
    assert "WorkerLostError" in at.becomes(dead, state="failed", outcome="lost")["error"]
    ended = at.send("waits", at.occurrence(), "ended")
    at.wait_ran("ended")
    at.app.control.revoke(ended.id, terminate=True, signal="SIGKILL")
    at.becomes(ended, state="failed", outcome="terminated")


def test_a_task_that_the_worker_does_not_have(at: Desk) -> None:
    row = at.becomes(at.send("nobody.has.this", at.occurrence()), state="failed", outcome="unknown")
    assert "nobody.has.this" in row["error"]


def test_messages_of_nobody_and_of_a_pruned_occurrence_run(at: Desk) -> None:
    gone = at.occurrence()
    with at.link.cursor() as cursor:
        cursor.execute("DELETE FROM onebeat_occurrence WHERE id = %s", [gone.key])
    at.send("note", gone, "pruned")
    for _ in range(2):
        at.app.send_task("tests.celery.tasks.note", ("by hand",))
    eventually(lambda: (at.ran("pruned"), at.ran("by hand")) == (1, 2), LIMIT, "them to run")
    eventually(lambda: f"[{gone.id}] runs unguarded" in at.log(), LIMIT, "the warning")


def test_a_copy_may_start_again_after_a_time(at: Desk) -> None:
    """It comes at once, is sent again for later, and then starts a body that is still at work: the price."""
    at.hold()
    one = at.send("waits_a_second", at.occurrence(), "slow", copies=2)
    eventually(lambda: at.ran("slow") == 2, LIMIT, "the second start")
    at.let_go()
    at.becomes(one, state="succeeded", duplicate_deliveries=1)


def test_a_copy_that_waits_does_not_start_when_the_attempt_has_ended(at: Desk) -> None:
    at.let_go()
    one = at.send("waits_a_second", at.occurrence(), "quick")
    at.becomes(one, state="succeeded")
    at.send("waits_a_second", one, "quick")
    at.becomes(one, duplicate_deliveries=1, state="succeeded")
    assert at.ran("quick") == 1
