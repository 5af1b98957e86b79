"""What a type checker knows of the verbs: read by `make lint` (mypy) and `make typing` (pyright), never run.

A line that must be an error has an ignore comment, and a comment that ignores nothing is an error itself.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from django.db import models

import onebeat
from onebeat import testing
from onebeat.models import PeriodicTask


@onebeat.linked
class Order(models.Model):
    class Meta:
        app_label = "shop"


class Remind:
    """As a Celery task is seen: it can be sent."""

    name = "shop.remind"

    def apply_async(self, *args: object, **kwargs: object) -> None: ...


remind, soon, order = Remind(), datetime.now(UTC), Order()

# -- once --------------------------------------------------------------------------------------------------------------

made = onebeat.once("k", at=soon, task=remind, args=(1,), kwargs={"x": 2}, queue="mail", priority=3, for_=order)
assert_type(made, onebeat.Once)
assert_type(made.created, bool)
assert_type(made.task, PeriodicTask)
assert_type(made.at, datetime)
onebeat.once("k", at=timedelta(hours=1), task="shop.remind", if_exists="reschedule", expires=60, tags=["mail"])

onebeat.once("k", task=remind)  # type: ignore[call-arg]
onebeat.once("k", at=5, task=remind)  # type: ignore[arg-type]
onebeat.once("k", at=soon, task=5)  # type: ignore[arg-type]
onebeat.once("k", at=soon, task=remind, if_exists="replace")  # type: ignore[arg-type]
onebeat.once("k", at=soon, task=remind, countdown=5)  # type: ignore[call-arg]
onebeat.once("k", at=soon, task=remind, priority="high")  # type: ignore[arg-type]
onebeat.once("k", soon, remind)  # type: ignore[misc, call-arg]

if made.state == "waiting":
    onebeat.cancel(made.key, "paid")

item: onebeat.OnceItem = {"key": "k", "at": soon, "task": remind, "queue": "mail"}
assert_type(onebeat.once_many([item]), list[onebeat.Once])
onebeat.once_many([{"key": "k", "at": soon}])  # type: ignore[typeddict-item]
onebeat.once_many([{"key": "k", "at": soon, "task": remind, "eta": 5}])  # type: ignore[typeddict-unknown-key]

# -- recurring ---------------------------------------------------------------------------------------------------------

daily = onebeat.Cron("0 9 * * mon-fri", tz="Europe/Paris")
declared = onebeat.recurring("daily", daily, remind, args=(1,), kwargs={"x": 2}, queue="mail", tags=["a"])
assert_type(declared, onebeat.Declaration)
onebeat.recurring("often", onebeat.Every(minutes=10), "shop.remind", jitter=timedelta(minutes=1), missed="skip")
onebeat.recurring("often", onebeat.Every(timedelta(hours=1)), remind, overlap="skip", expires=60, start_time=soon)
onebeat.recurring("lights", onebeat.Solar("sunset", 48.85, 2.35), remind, grace=timedelta(hours=1), enabled=False)
assert_type(onebeat.overrides("daily")[0].field, str)
assert_type(onebeat.drop_override(made.task, "queue", by="ann"), bool)

onebeat.recurring("daily", "0 9 * * *", remind)  # type: ignore[arg-type]
onebeat.recurring("daily", daily)  # type: ignore[call-arg]
onebeat.recurring("daily", daily, remind, missed="never")  # type: ignore[arg-type]
onebeat.recurring("daily", daily, remind, jitter=5)  # type: ignore[arg-type]
onebeat.recurring("daily", daily, remind, countdown=5)  # type: ignore[call-arg]
onebeat.Every(fortnights=2)  # type: ignore[call-arg]
onebeat.Cron(9)  # type: ignore[arg-type]
daily.tz = "UTC"  # type: ignore[misc]


# -- the testing kit ---------------------------------------------------------------------------------------------------


def test_it(onebeat: testing.Onebeat) -> None:
    assert_type(onebeat.advance(days=3), list[testing.Sent])
    onebeat.at("2027-03-28 01:59 Europe/Berlin")
    assert_type(onebeat.sent[0].args[0], Any)
    onebeat.advance(days="3")  # type: ignore[arg-type]
    onebeat.kill()  # type: ignore[call-arg]


# -- the others --------------------------------------------------------------------------------------------------------

assert_type(onebeat.pause("nightly", "deploy", timedelta(hours=1), by="ann"), int)
onebeat.pause(onebeat.Tag("mail"))
onebeat.pause(onebeat.ALL, until=soon)
assert_type(onebeat.resume(made.task, catch_up="latest"), int)
assert_type(onebeat.skip("nightly", soon), bool)
assert_type(onebeat.run_now("nightly").run, int)
assert_type(onebeat.upcoming("nightly", 3)[0].due_at, datetime)
assert_type(onebeat.cancel("k"), bool)
assert_type(onebeat.explain("nightly", soon).sentence, str)

onebeat.pause(5)  # type: ignore[arg-type]
onebeat.resume("nightly", catch_up="some")  # type: ignore[arg-type]
onebeat.run_now(onebeat.ALL)  # type: ignore[arg-type]
onebeat.skip("nightly")  # type: ignore[call-arg]


# -- their twins -------------------------------------------------------------------------------------------------------


async def view() -> None:
    assert_type(await onebeat.aonce("k", at=soon, task=remind, queue="mail"), onebeat.Once)
    assert_type(await onebeat.apause("nightly", "why"), int)
    assert_type(await onebeat.aupcoming("nightly"), list[onebeat.Upcoming])
    await onebeat.aonce("k", task=remind)  # type: ignore[call-arg]
    await onebeat.acancel(5)  # type: ignore[arg-type]
