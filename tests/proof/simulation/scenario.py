"""One run, drawn from a seed: who is there, what is wanted, what changes, and what goes wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from django.db import connection

from onebeat.conf import Settings
from onebeat.models import Occurrence
from tests.proof.checker import check
from tests.proof.history import Fault, Finding, History, Row, Terms, Trouble
from tests.proof.simulation.crons import CHANGES
from tests.proof.simulation.faulty import Hit, watched
from tests.proof.simulation.wanted import Wanted
from tests.proof.simulation.world import Scheduler, World, govern

#: Workers are done with what they got last.
_WORKERS = timedelta(seconds=25)
#: As they are written, and as the engine's tables are emptied between two runs.
_TABLES = (
    *("onebeat_occurrence", "onebeat_taskstate", "onebeat_change", "onebeat_beat", "onebeat_fact", "onebeat_outage"),
    *("onebeat_batch", "onebeat_lease", "onebeat_taskoptions", "onebeat_action", "django_celery_beat_periodictask"),
    *("django_celery_beat_periodictasks", "django_celery_beat_intervalschedule"),
    *("django_celery_beat_crontabschedule", "django_celery_beat_clockedschedule", "sqlite_sequence"),
)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


@dataclass(frozen=True)
class Size:
    """How large a run is; all in seconds."""

    #: How long things go wrong, and how long everybody is left in peace afterwards.
    trouble: float
    peace: float
    poll: float
    away: float
    lease: float
    late: float
    #: How long things may last that go wrong.
    lasts: tuple[float, ...]
    tasks: int
    edits: tuple[int, ...]


#: What goes wrong shows in a few ticks mostly; one run in some is longer, and has all that schedulers do beside them.
SHORT = Size(8, 11, 5, 5, 3, 12, (0.5, 2, 4, 7), 2, (0, 0, 1, 2))
LONG = Size(20, 20, 5, 10, 6, 20, (1, 5, 11, 45), 4, (0, 1, 2, 4))
_ONE_IN = 10


class Scenario:
    """The run of one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(seed)
        self.long = seed % _ONE_IN == 0
        self.size = size = LONG if self.long else SHORT
        middle = rng.choice(CHANGES)
        #: Whether several are due at the same instants, so that a batch has more than one flush.
        self.crowd = not self.long and rng.random() < 0.3
        #: Whether the broker is so slow that leases end on the way, with others who look for such.
        self.slow = self.crowd and rng.random() < 0.4
        if self.slow:
            self.size = size = replace(size, poll=1.0)
        batch = rng.choice([5, 50] if self.crowd else [2, 5, 50])
        #: Whether some changes come past the ORM; only the sweep sees those before their time.
        self.by_sql = self.long and rng.random() < 0.5
        settings = Settings(
            poll_interval=size.poll,
            away_seconds=size.away,
            lease_seconds=size.lease,
            late_seconds=size.late,
            batch_size=batch,
            flush_size=rng.choice([1, 1, 3] if self.crowd else [1, 3, 50]),
            plain_below=rng.choice([2, 50]),
            sweep_size=50 if self.by_sql else 0,
            keep_days=0,
            keep_failed_days=0,
        )
        self.world = World(middle - seconds(rng.uniform(2, size.trouble)), rng, settings, whole=self.long)
        self.outages = Counter[tuple[str, str]]()
        self.end = self.world.start + seconds(size.trouble + size.peace)
        self.tasks = [
            Wanted(self.world, f"task {number}", middle, self.end + seconds(600))
            for number in range(rng.randint(2, 4) if self.crowd else rng.randint(1, size.tasks))
        ]

    def run(self) -> list[Finding]:
        """Let it happen, and ask the checker."""
        _empty()
        world, rng, size = self.world, self.rng, self.size
        govern(world)
        for number in range(rng.choice([2, 2, 3] if self.crowd else [1, 1, 2, 2, 2, 3])):
            host = Scheduler(world, f"s{number}", seconds(rng.choice([0, 0, 60, -60])))
            began = rng.uniform(0, size.trouble / 10)
            world.fault(Trouble.STOPPED, seconds(began), host.name)
            world.at(world.start + seconds(began), host.step)
            for _ in range(rng.choice([0, 1, 1, 2])):
                if not self.slow:
                    host.hits.append(self._in_a_batch() if self.crowd else self._hit())
            host.hits.sort(key=lambda hit: hit.boundary)
        if self.crowd:
            self._later(0, 0.2 * size.trouble, self._create_alike)
        for task in () if self.crowd else self.tasks:
            self._later(0, 0.4 * size.trouble, lambda task=task: self._create(task))
        for _ in range(rng.choice([0, 1, 3] if self.crowd else size.edits)):
            self._later(0.15 * size.trouble, size.trouble, self._edit)
        for _ in range(1 if self.slow else rng.choice([0, 0, 1, 2])):
            self._outage()
        with watched(world):
            world.run(world.start + seconds(size.trouble))
            for host in world.hosts:
                host.hits.clear()
            # A suspended one may come back later than that: it has its trouble first.
            over = max([self.end - seconds(size.peace), *(fault.ended for fault in world.faults)])
            world.run(over + seconds(size.peace))
            ended = world.now
            for host in world.hosts:
                host.leave()
            world.run(ended + _WORKERS)
        return check(self.history(ended))

    def history(self, ended: datetime) -> History:
        """What was wanted, what went wrong, what happened."""
        settings, world = self.world.settings, self.world
        size = self.size
        terms = Terms(
            settings.batch_size, seconds(size.lease), seconds(size.away), seconds(size.late), seconds(size.poll + 1.5)
        )
        return History(
            {task.name: task.reigns for task in self.tasks if task.reigns},
            world.start,
            ended,
            _ledger(),
            world.broker.arrivals,
            world.faults,
            world.executions,
            [host.name for host in world.hosts],
            terms,
            reported=True,
        )

    # -- what goes wrong ----------------------------------------------------------------------------------------------

    def _later(self, first: float, last: float, what: Callable[[], None]) -> None:
        self.world.at(self.world.start + seconds(self.rng.uniform(first, last)), what)

    def _hit(self) -> Hit:
        action = self.rng.choice(["crash", "crash", "error", "error", "commit", "suspend", "lost"])
        lasts = {"crash": self.rng.choice(self.size.lasts), "suspend": self.rng.choice(self.size.lasts)}
        # There are far more statements than steps at which messages are in flight or about to be.
        aims = {
            "crash": ["", "", "step", "after message", "after commit"],
            "suspend": ["", "step", "step", "before message", "after message"],
            "error": ["", "", "", "recording"],
        }
        only = self.rng.choice(aims.get(action, [""]))
        last = 200 if self.long else 80
        return Hit(self.rng.randint(1 if only else 10, last), action, seconds(lasts.get(action, 0)), only)

    def _in_a_batch(self) -> Hit:
        """Between the claim and the last flush: somebody else may take over what is left."""
        action = self.rng.choice(["suspend", "suspend", "suspend", "crash", "error", "lost"])
        lasts = seconds(self.rng.choice(self.size.lasts[-2:]))
        aims = {"lost": ["after message"], "error": ["recording"]}
        only = self.rng.choice(aims.get(action, ["step", "before message", "after message"]))
        return Hit(self.rng.randint(1, 60), action, lasts if action in ("suspend", "crash") else seconds(0), only)

    def _outage(self) -> None:
        """The broker or the database is not itself for a while, for all."""
        world, broker = self.world, self.world.broker
        lasts = seconds(self.rng.choice(self.size.lasts))
        takes = seconds(1.3 if self.slow else 0.7)
        lasts = seconds(self.size.trouble) if self.slow else lasts
        name = f"task {self.rng.randrange(len(self.tasks))}"

        def away(on: bool) -> None:
            broker.away = on

        def full(on: bool) -> None:
            broker.full = on

        def database(on: bool) -> None:
            world.database_away = on

        def slow(on: bool) -> None:
            broker.takes = takes if on else seconds(0)

        def refuses(on: bool) -> None:
            (broker.refuses.add if on else broker.refuses.discard)(name)

        def defers(on: bool) -> None:
            (broker.defers.add if on else broker.defers.discard)(name)

        kinds: dict[Callable[[bool], None], Trouble] = {
            away: Trouble.BROKER, full: Trouble.BROKER, database: Trouble.DATABASE, slow: Trouble.SUSPEND,
            refuses: Trouble.REFUSAL, defers: Trouble.REFUSAL,
        }  # fmt: skip
        switch = slow if self.slow else self.rng.choice(list(kinds))
        task = name if kinds[switch] == Trouble.REFUSAL else ""

        def begin() -> None:
            world.tell(f"{switch.__name__} for {lasts.total_seconds()} s")
            # Who is hit by it with messages on their way says so.
            told = Fault(
                kinds[switch], world.now, world.now + lasts, copies=frozenset(), task=task, known=switch is away
            )
            world.faults.append(told)
            self.outages[switch.__name__, task] += 1
            switch(True)

        def end() -> None:
            self.outages[switch.__name__, task] -= 1
            if not self.outages[switch.__name__, task]:  # two may overlap
                switch(False)

        start = self.rng.uniform(0.0 if self.slow else 0.2, 0.3 if self.slow else 0.75) * self.size.trouble
        self.world.at(self.world.start + seconds(start), begin)
        self.world.at(self.world.start + seconds(start) + lasts, end)

    # -- what people do -----------------------------------------------------------------------------------------------

    def _schedule(self) -> tuple[Any, ...]:
        rng, now = self.rng, self.world.now
        near = now.astimezone(UTC)
        kinds = [
            ("every", rng.choice([3, 5, 7, 20])),
            ("every", rng.choice([3, 5, 7, 20])),
            ("cron", *rng.choice([("*", "*"), ("0-59", "0-23"), ("*/2", "*"), ("0", "*"), ("0", "3"), ("0-5", "1-3")])),
            ("at", _whole(near + seconds(rng.uniform(-2, 15)))),
        ]
        return rng.choice(kinds)

    def _create_alike(self) -> None:
        schedule = self._schedule()
        for task in self.tasks:
            self._create(task, schedule)

    def _create(self, task: Wanted, schedule: tuple[Any, ...] | None = None) -> None:
        rng = self.rng
        options: dict[str, Any] = {"missed": rng.choice(["latest", "latest", "skip", "all"])}
        if rng.random() < 0.2:
            options["grace_seconds"] = rng.choice([5, 15])
        if rng.random() < 0.2:
            options["jitter_seconds"] = rng.choice([1, 4])
        if rng.random() < 0.25:
            options["overlap"] = "skip"
        fields: dict[str, Any] = {}
        schedule = schedule or self._schedule()
        if rng.random() < 0.15:
            fields["expires"] = _whole(self.world.now + seconds(rng.uniform(5, 30)))
        if schedule[0] != "at" and rng.random() < 0.2:
            fields["one_off"] = True
        task.create(schedule, options if rng.random() < 0.7 else {}, **fields)

    def _edit(self) -> None:
        rng = self.rng
        there = [task for task in self.tasks if task.reigns and not task.gone]
        if not there:
            return
        task = rng.choice(there)
        now = task.reigns[-1]
        edits: list[Callable[[], None]] = [
            lambda: task.change(self._schedule()),
            lambda: task.enable(not now.enabled),
            lambda: task.enable(not now.enabled),
            lambda: task.policy(missed=rng.choice(["latest", "skip", "all"])),
            lambda: task.policy(paused=not now.paused),
            task.save,
            task.delete,
        ]
        if self.crowd:
            edits = [*edits[1:3], edits[4], task.delete]
        if self.by_sql:
            edits = [lambda: task.spoil(not now.broken), task.disable_by_sql]
        rng.choice(edits)()


def _whole(instant: datetime) -> datetime:
    return instant.replace(microsecond=0)


def _empty() -> None:
    with connection.cursor() as cursor:
        for table in _TABLES:
            cursor.execute(f"DELETE FROM {table}")


def _ledger() -> list[Row]:
    return [
        Row(
            task=row.task_name,
            due_at=row.due_at,
            state=str(row.state),
            reason=row.reason,
            through=row.last_due_at,
            into=row.into_at,
            message_id=str(row.celery_task_id),
            decided_at=row.decided_at,
            sent_at=row.sent_at,
            claims=max(row.claims, 0 if row.beat_id is None else 1),  # a claim that was given back is not counted
            run=row.run,
        )
        for row in Occurrence.objects.order_by("due_at", "id")
    ]
