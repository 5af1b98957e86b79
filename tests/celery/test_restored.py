"""A database that was restored under waiting messages gives its keys out again: a worker goes by what a message is."""

from __future__ import annotations

from typing import Any

import pytest
from celery import Celery
from celery.app.trace import build_tracer

from onebeat.celery import Guarded
from onebeat.core import clock
from onebeat.dispatch.base import Message
from onebeat.models import Occurrence, PeriodicTask, TaskState
from tests.celery.test_guarding import app  # noqa: F401 (a fixture)
from tests.engine.kit import Bench, at, clocked, task


def sent(bench: Bench, name: str) -> tuple[Message, PeriodicTask]:
    """A one-off due at the same instant as any other of this module, and its message, which no worker has yet."""
    one = task(name, clocked=clocked(at(10)), one_off=True)
    bench.tick()
    return bench.outbox.messages[-1], one


def restored(gone: PeriodicTask) -> None:
    """As the database was before the task was made. Its keys are free again."""
    for model in (Occurrence, TaskState):
        model.objects.filter(task_id=gone.pk).delete()
    PeriodicTask._base_manager.filter(pk=gone.pk)._raw_delete("default")  # type: ignore[attr-defined]


def rekeyed(one: PeriodicTask, row: int, key: int) -> None:
    """The task has the key of the one that is gone, and its occurrence the key of that one's."""
    old = one.pk
    PeriodicTask._base_manager.filter(pk=old).update(id=key)
    TaskState.objects.filter(task_id=old).update(task_id=key)
    Occurrence.objects.filter(task_id=old).update(task_id=key, id=row)


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("order", ["lost first", "lost last"])
def test_each_message_runs_once_and_only_its_own_row_says_so(
    bench: Bench,
    app: Celery,  # noqa: F811
    order: str,
    guarded: bool,
) -> None:
    ran: list[str] = []

    @app.task(name="body", bind=True, shared=False, **({"base": Guarded} if guarded else {}))
    def body(self: Any) -> None:
        ran.append(self.request.id)

    clock.move(at(10))
    lost, gone = sent(bench, "one")
    key = Occurrence.objects.get(task_id=gone.pk).pk
    restored(gone)
    kept, new = sent(bench, "two")
    rekeyed(new, key, gone.pk)
    assert lost.id != kept.id

    def work(message: Message) -> None:
        headers = {"id": message.id, "root_id": message.id, "retries": 0, "hostname": "w@h", "delivery_info": {}}
        build_tracer("body", body, app=app)(message.id, (), {}, {**headers, **message.options["headers"]})

    messages = [lost, kept] if order == "lost first" else [kept, lost]
    for message in messages:
        work(message)
        row = Occurrence.objects.get()
        assert (row.state == "succeeded") == (kept.id in ran)
    assert ran == [message.id for message in messages]
    assert (row.pk, str(row.celery_task_id), row.attempt, row.duplicate_deliveries) == (key, kept.id, 0, 0)
    work(kept)
    row.refresh_from_db()
    assert (len(ran), row.duplicate_deliveries) == (2 if guarded else 3, 1)
