"""New code on a database that `migrate` has not reached: it does what django-celery-beat did, without an error."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from typing import Any

from tests.processes import run_python
from tests.takeover.old import Old, old, old_templates

__all__ = ["old", "old_templates"]

#: From here on the columns are those that this code knows.
SHOP = ("migrate", "--verbosity=0", "shop")
STATES = ("0016_alter_crontabschedule_timezone", "0019_alter_periodictasks_options")


def before_and_after() -> dict[str, Any]:
    """A process that lives through the migration, which another one makes: it writes, serves the admin and sends."""
    from django.core.management import call_command

    from onebeat.models import IntervalSchedule

    wrote = [write(False), write(True)]
    # As TransactionTestCase does.
    call_command("flush", interactive=False, verbosity=0)
    assert not IntervalSchedule.objects.exists()
    for key in (1, 2):  # as somebody's fixture, outside of any transaction
        IntervalSchedule(id=key, every=5, period="minutes").save_base(raw=True)
    pages = in_the_admin()
    told, sent = a_scheduler()
    return {"wrote": wrote, "pages": pages, "told": told, "sent": sent}


def write(atomic: bool) -> dict[str, Any]:
    from datetime import UTC, datetime
    from decimal import Decimal

    from django.db import transaction

    from onebeat import models as m

    told = []

    def tell() -> None:
        row = m.PeriodicTasks.objects.filter(ident=1).first()
        told.append(row is not None)
        m.PeriodicTasks.objects.all().delete()

    with transaction.atomic() if atomic else nullcontext():
        five = m.IntervalSchedule(every=5, period="hours")
        five.save()
        again = m.IntervalSchedule.objects.create(every=5, period="hours")
        got, made = m.IntervalSchedule.objects.get_or_create(every=5, period="hours")
        six, new = m.IntervalSchedule.objects.update_or_create(every=5, period="hours", defaults={"every": 6})
        keys = {five.pk, again.pk, got.pk, six.pk}
        crontab = m.CrontabSchedule.from_schedule(m.CrontabSchedule(minute="7").schedule)
        noon = datetime(2040, 1, 1, 12, tzinfo=UTC)
        clocks = m.ClockedSchedule.objects.bulk_create([m.ClockedSchedule(clocked_time=noon) for _ in range(3)])
        m.SolarSchedule.objects.get_or_create(event="sunset", latitude=Decimal(1), longitude=Decimal(2))
        tell()  # schedules alone concern no beat, but the edit of one does

        task = m.PeriodicTask(name="a", task="t", interval=six)
        task.save()
        tell()
        m.PeriodicTask.objects.bulk_create([m.PeriodicTask(name="b", task="t", clocked=clocks[0])])
        tell()
        m.PeriodicTask.objects.filter(name="a").update(crontab=crontab, interval=None)
        tell()
        task.refresh_from_db()
        task.args = [1]
        m.PeriodicTask.objects.bulk_update([task], ["args"])
        tell()
        m.PeriodicTask.objects.update_or_create(name="b", defaults={"enabled": False})
        tell()
        m.CrontabSchedule.objects.filter(pk=crontab.pk).update(minute="8")
        tell()
        crontab.refresh_from_db()
        crontab.minute = "9"
        crontab.full_clean()
        crontab.save()
        tell()
        m.PeriodicTask.objects.get(name="b").delete()
        tell()
        crontab.delete()  # and the one task on it
        tell()
        m.PeriodicTask.objects.create(name="c", task="t", interval=six)
        tell()
        m.PeriodicTask.objects.all().delete()
        tell()
        six.delete()
    return {
        "keys": len(keys), "made": [made, new], "clocks": len({one.pk for one in clocks}), "told": set(told) == {True},
        "left": [m.PeriodicTask.objects.count(), m.CrontabSchedule.objects.count()],
    }  # fmt: skip


def in_the_admin() -> list[Any]:
    """Pages of the admin on such a database: status codes, then the names of the tasks that are left."""
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    from onebeat.models import PeriodicTask

    for app in ("admin", "sessions"):
        call_command("migrate", app, verbosity=0)
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    base = "/admin/django_celery_beat"
    task = {"name": "x", "task": "t", "enabled": "on", "args": "[]", "kwargs": "{}", "headers": "{}"}
    duplicate = {"every": "5", "period": "minutes"}
    every = {"kind": "interval", "interval_every": "5", "interval_period": "minutes"}
    answers = [
        client.get(f"{base}/periodictask/"),
        client.post(f"{base}/intervalschedule/1/change/", duplicate),
        client.post(f"{base}/periodictask/add/", {**task, **every}),
    ]
    key = PeriodicTask.objects.get(name="x").pk
    answers += [
        client.post(f"{base}/periodictask/{key}/change/", {**task, **every, "name": "y"}),
        client.get(f"{base}/periodictask/{key}/change/"),
        client.post(f"{base}/periodictask/add/", {**task, **every, "name": "z"}),
        client.post(f"{base}/periodictask/{key}/delete/", {"post": "yes"}),
    ]
    return [*(one.status_code for one in answers), *PeriodicTask.objects.values_list("name", flat=True)]


def a_scheduler() -> tuple[list[str], list[Any]]:
    """What it logs, and what it sends: before, and after."""
    import logging

    from django.db import transaction

    from onebeat.core import clock
    from onebeat.engine.loop import Loop
    from onebeat.engine.stop import Stop
    from onebeat.models import Change, PeriodicTask
    from tests.engine.kit import START, Bench, sweep
    from tests.processes import manage

    told: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage().split(" ")[0])  # type: ignore[method-assign]
    logging.getLogger("onebeat").addHandler(handler)
    with clock.pin(START):
        bench = Bench()
        loop = Loop(bench.engine, Stop())
        pauses = {loop.tick(), loop.tick()}
        assert pauses == {bench.engine.parts.settings.poll_interval}
        manage({}, "migrate", "--verbosity=0")
        with transaction.atomic():
            PeriodicTask.objects.create(name="after", task="t", interval_id=1)
        assert Change.objects.count() == 1
        loop.tick()
        sweep()
        clock.move(START + timedelta(minutes=5))
        loop.tick()
        loop.close()
    return told, sorted(name for name, _ in bench.sent)


def test_a_process_lives_through_the_migration(old: Old) -> None:
    old.intervals((1, 5, "minutes"), (2, 5, "minutes"))
    old.call(SHOP)
    assert run_python(old.scratch.env, before_and_after) == {
        "wrote": 2 * [{"keys": 1, "made": [False, False], "clocks": 1, "told": True, "left": [0, 0]}],
        "pages": [200, 302, 302, 302, 200, 302, 302, "z"],
        "told": ["waiting", "the", "no"],  # at last: nobody was at work in the five minutes that the clock jumps
        "sent": ["after", "z"],
    }
