"""Tasks as people make and change them, written down as reigns; instants are reckoned here, without the engine."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from onebeat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, TaskOptions
from tests.proof.history import Reign
from tests.proof.simulation.crons import ZONE, cron_times
from tests.proof.simulation.world import World

#: A change past the ORM is seen when the task is due, or by the sweep of whoever is able to make it.
SEEN = timedelta(seconds=60)
TASK = "django_celery_beat_periodictask"


@dataclass
class Wanted:
    """One task: what the database holds, and what it was meant to mean."""

    world: World
    name: str
    middle: datetime
    horizon: datetime
    reigns: list[Reign] = field(default_factory=list)
    pk: int = 0
    #: Where an interval's grid begins.
    anchor: datetime | None = None

    def create(self, schedule: tuple[Any, ...], options: dict[str, Any], **fields: Any) -> None:
        self.anchor = self.world.now
        with transaction.atomic():
            task = PeriodicTask(name=self.name, task="simulated", **self._columns(schedule), **fields)
            PeriodicTask.objects.bulk_create([task])
            self.pk = task.pk
            if options:
                TaskOptions.objects.create(task=task, **options)
        said = {name: fields[name] for name in ("one_off", "expires", "enabled") if name in fields}
        self._reign(schedule, **said, **_policy(options))

    def change(self, schedule: tuple[Any, ...]) -> None:
        """Another schedule."""
        # Whoever gives a one-off another time switches it on: a finished one is off.
        switch = {"one_off": False, "enabled": self.reigns[-1].enabled}
        columns = {"interval": None, "crontab": None, "clocked": None, **switch, **self._columns(schedule)}
        PeriodicTask.objects.filter(pk=self.pk).update(**columns)
        self._reign(schedule)

    def enable(self, enabled: bool) -> None:
        if enabled != self.reigns[-1].enabled:
            PeriodicTask.objects.filter(pk=self.pk).update(enabled=enabled)
            self._follow(enabled=enabled, rebased=True, named=False)

    def policy(self, **options: Any) -> None:
        """Another policy, or a pause: it moves nothing."""
        TaskOptions.objects.update_or_create(task_id=self.pk, defaults=options)
        self._follow(**_policy(options))

    def spoil(self, broken: bool) -> None:
        """Arguments that are not JSON, or sound ones again; only SQL can write such a thing."""
        self._by_sql("args", "[" if broken else "[]")
        self._follow(broken=broken, rebased=True, settled=self.world.now + SEEN)

    def delete(self) -> None:
        PeriodicTask.objects.filter(pk=self.pk).delete()
        self._follow(gone=True)

    def save(self) -> None:
        """A person opens the form and saves it as it is."""
        PeriodicTask.objects.get(pk=self.pk).save()

    def disable_by_sql(self) -> None:
        """Past the ORM."""
        self._by_sql("enabled", False)
        self._follow(enabled=False, rebased=True, settled=self.world.now + SEEN)

    def _by_sql(self, column: str, value: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE {TASK} SET {column} = %s WHERE id = %s", [value, self.pk])

    @property
    def gone(self) -> bool:
        return self.reigns[-1].gone

    def _columns(self, schedule: tuple[Any, ...]) -> dict[str, Any]:
        match schedule:
            case ("every", seconds):
                return {"interval": IntervalSchedule.objects.get_or_create(every=seconds, period="seconds")[0]}
            case ("cron", minute, hour):
                found, _ = CrontabSchedule.objects.get_or_create(minute=minute, hour=hour, timezone=ZONE)
                return {"crontab": found}
            case ("at", instant):
                found, _ = ClockedSchedule.objects.get_or_create(clocked_time=instant)
                return {"clocked": found, "one_off": True}
        raise AssertionError(schedule)

    def _times(self, schedule: tuple[Any, ...]) -> tuple[datetime, ...]:
        match schedule:
            case ("every", seconds):
                assert self.anchor is not None
                count = (self.horizon - self.anchor) // timedelta(seconds=seconds)
                return tuple(self.anchor + timedelta(seconds=seconds * n) for n in range(1, count + 1))
            case ("cron", minute, hour):
                found = cron_times(minute, hour, self.middle)
                return found[bisect_right(found, self.world.start) : bisect_right(found, self.horizon)]
        return (schedule[1],)

    def _reign(self, schedule: tuple[Any, ...], **fields: Any) -> None:
        now = self.world.now
        before = self.reigns[-1] if self.reigns else Reign((), now, now)
        named = schedule[0] == "at"
        fields = {"one_off": named, "rebased": True, **fields}
        self.reigns.append(replace(before, times=self._times(schedule), begins=now, settled=now, named=named, **fields))
        self.world.tell(f"{self.name}: {schedule} {fields}")

    def _follow(self, **fields: Any) -> None:
        now = self.world.now
        self.reigns.append(replace(self.reigns[-1], **{"rebased": False, "begins": now, "settled": now, **fields}))
        self.world.tell(f"{self.name}: {fields}")


def _policy(options: dict[str, Any]) -> dict[str, Any]:
    seconds: dict[str, Callable[[Any], Any]] = {
        "grace_seconds": lambda value: {"grace": None if value is None else timedelta(seconds=value)},
        "jitter_seconds": lambda value: {"jitter": timedelta(seconds=value)},
    }
    found: dict[str, Any] = {}
    for name, value in options.items():
        found |= seconds[name](value) if name in seconds else {name: value}
    return found
