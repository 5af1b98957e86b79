"""One cell of the chaos: schedulers and a guarded worker on one database and one broker, faults, and the verdict."""

from __future__ import annotations

import json
import os
import signal
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from tests.engine.fleet import Fleet, Process
from tests.processes import eventually
from tests.proof import guarded, shifted, work
from tests.proof.checker import SENT, check
from tests.proof.history import Arrival, Execution, Fault, Finding, History, Kind, Reign, Row, Terms, Trouble
from tests.proof.simulation.crons import cron_times
from tests.proxy import Proxy

LIMIT = 120.0
SECOND = timedelta(seconds=1)
LEASE, AWAY, LATE, BATCH = 3.0, 8.0, 60.0, 50
SETTINGS = {
    "poll_interval": 0.5, "lease_seconds": LEASE, "away_seconds": AWAY, "late_seconds": LATE, "batch_size": BATCH,
    "flush_size": 10, "plain_below": 5,
}  # fmt: skip
#: A busy machine is no fault of a scheduler's: how late a message came is told and not judged.
_SLACK = timedelta(seconds=10)
#: So long nothing stands still on a machine that is only busy.
_STALL = timedelta(seconds=3)
_COLUMNS = (
    "id, task_name, due_at, state, reason, through, into_at, celery_task_id, decided_at, sent_at, claims, beat_id"
)
LOSSES = {Kind.LOST, Kind.UNSENT, Kind.UNRECEIVED, Kind.NOT_RUN}


@dataclass
class Verdict:
    """A row of the table."""

    place: str
    fault: str
    faults: int
    expected: int
    lost: int
    copies: int
    ran_twice: int
    unexplained: int
    silence: float
    #: How often the machine or a server stood still by itself meanwhile.
    stalls: int
    #: What the checker found, or why the cell could not be carried out.
    findings: list[Finding | str]

    @property
    def broken(self) -> bool:
        return bool(self.findings)


@dataclass
class Cell:
    fleet: Fleet
    folder: Path
    name: str
    #: For each scheduler: what `tests.proof.scheduler` is told.
    orders: list[dict[str, Any]]
    shift: timedelta = timedelta(0)
    database: Proxy | None = None
    broker: Proxy | None = None
    #: The worker stands still while things go wrong, so that what is recovered is sent again: it finds both copies.
    worker_waits: bool = False
    #: The policies of the tasks that are due every second, by name.
    recurring: dict[str, str] = field(default_factory=lambda: dict(work.RECURRING))
    rng: Random = field(default_factory=lambda: Random(1))
    schedulers: list[Process] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    made: dict[str, Any] = field(default_factory=dict)
    edits: Future[Any] | None = None
    #: How often the machine or a server was not itself for a while, beside what we did to them.
    stalls: int = 0
    #: How far the worker's lines have been read, and the occurrences that have run by then.
    _read: int = 0
    _ran: set[int] = field(default_factory=set)
    _closed: threading.Event = field(default_factory=threading.Event)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2))

    # -- processes ----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the schedulers and the worker, and wait until all can send."""
        fleet = self.fleet
        fleet.settings = SETTINGS
        fleet.env[shifted.VARIABLE] = str(self.shift.total_seconds())
        proxied: dict[str, str] = {}
        if self.database:
            settings = {**fleet.database.settings, "HOST": "127.0.0.1", "PORT": self.database.port}
            proxied["ONEBEAT_TEST_DB"] = json.dumps(settings)
        if self.broker:
            proxied["ONEBEAT_TEST_BROKER"] = self.broker.url
        self._proxied = proxied
        self.began = self.now() - timedelta(seconds=1)
        celery = {"CELERY_IMPORTS": ["tests.proof.guarded"], "CELERY_BROKER_CONNECTION_MAX_RETRIES": None}
        env = {"ONEBEAT_TEST_LOG": str(self.log), "ONEBEAT_TEST_CELERY": json.dumps(celery)}
        options = ("-P", "solo", "-l", "info", "--without-mingle", "--without-gossip", "-n", f"{fleet.post.queue}@here")
        worker = ("-m", "celery", "-A", "tests.project.celery", "worker", *options)
        self.worker = fleet.spawn(fleet.environment(**env), *worker)
        self.schedulers = [self.start(order) for order in self.orders]
        for process in self.schedulers:
            self.wait_able(process)
        self.began = self.now()
        self._pool.submit(self._watch)

    def _watch(self) -> None:
        """Look whether the machine stands still, or the database does: a trouble as well, and everybody's."""
        link, before = self.fleet.database.connect(), self.now()
        while not self._closed.wait(0.2):
            try:
                with link.cursor() as cursor:
                    cursor.execute("SELECT 1")
            except Exception:  # away, by our hand
                link.close()
            now = self.now()
            if now - before > _STALL:
                self.faults.append(Fault(Trouble.SUSPEND, before, now))
                self.stalls += 1
            before = now

    def close(self) -> None:
        """Nothing of ours goes on in this process."""
        self._closed.set()
        self._pool.shutdown(wait=False)

    @property
    def log(self) -> Path:
        return self.folder / "worker-lines"

    def start(self, order: dict[str, Any]) -> Process:
        return self.fleet.spawn(
            self.fleet.environment(**self._proxied), "-m", "tests.proof.scheduler", json.dumps(order)
        )

    def wait_able(self, process: Process) -> None:
        def able() -> bool:
            found = self.ask(f"SELECT able_since FROM onebeat_beat WHERE pid = {process.pid} ORDER BY id DESC")
            return bool(found and found[0][0]) or process.poll() is not None

        eventually(able, LIMIT, f"a scheduler that can send on {self.fleet.place}")

    def ask(self, sql: str) -> list[Any]:
        """What the database answers; nothing while it is away."""
        try:
            return self.fleet.query(sql)
        except Exception:
            self.fleet._connection = None
            return []

    def now(self) -> datetime:
        return datetime.now(UTC) + self.shift

    # -- faults -------------------------------------------------------------------------------------------------------

    @contextmanager
    def trouble(self, kind: Trouble, scheduler: str = "") -> Iterator[None]:
        began = self.now()
        yield
        self.faults.append(Fault(kind, began, self.now(), scheduler))

    def dies(self, number: int, order: dict[str, Any] | None = None) -> None:
        """The scheduler ends, by our hand or its own, and is started again."""
        process = self.schedulers[number]
        if order is None:
            process.kill()
        process.wait(LIMIT)
        assert process.returncode == -signal.SIGKILL, f"a scheduler ended with {process.returncode}"
        with self.trouble(Trouble.CRASH, f"s{number}"):
            self.schedulers[number] = self.start(order or {})
            self.wait_able(self.schedulers[number])

    # -- work ---------------------------------------------------------------------------------------------------------

    def give_work(self, one_offs: int, over: float, *, crons: bool = False) -> None:
        """Tasks every second, one-offs over some seconds, crontabs if asked for, and somebody who edits."""
        self.made = self.fleet.make(work.make, self.recurring, one_offs, over, crons)
        if self.worker_waits:
            self.worker.send_signal(signal.SIGSTOP)
        self.edits = self._pool.submit(self.fleet.make, work.edit, 8, 1.5)

    def finish(self, limit: float = LIMIT) -> None:
        """Let everything come to its end, which may take `limit` seconds for each step, and stop."""
        assert self.edits is not None
        # What was claimed when the last fault ended is sent again before the worker can say that it has it.
        eventually(lambda: not self._lost(), LIMIT, f"recovery on {self.fleet.place}")
        self.worker.send_signal(signal.SIGCONT)
        self._edited = [*self.edits.result(LIMIT)]
        before = len(self._sent("latest"))
        eventually(lambda: len(self._sent("latest")) >= before + 2, LIMIT, f"regular runs on {self.fleet.place}")
        self._over = self.fleet.make(work.end)
        eventually(self._done, limit, f"the end of all tasks on {self.fleet.place}")
        self.ended = self.now()
        assert self.worker.poll() is None, "the worker ended by itself"
        eventually(self._worked, limit, f"the worker to be done on {self.fleet.place}")
        for process in self.schedulers:
            process.terminate()
        codes = [process.wait(LIMIT) for process in self.schedulers]
        assert set(codes) <= {0}, f"exit codes {codes}"
        with suppress(ProcessLookupError):
            os.killpg(self.worker.pid, signal.SIGKILL)
        self.close()

    def _sent(self, task: str) -> list[Any]:
        return self.ask(f"SELECT id FROM onebeat_occurrence WHERE state <> 'skipped' AND task_name = '{task}'")

    def _lost(self) -> list[Any]:
        long_ago = f"{(self.now() - timedelta(seconds=2)).replace(tzinfo=None).isoformat(sep=' ')}"
        return self.ask(f"SELECT id FROM onebeat_occurrence WHERE state = 'claimed' AND due_at < '{long_ago}'")

    def _done(self) -> bool:
        try:
            return self.fleet.finished(len(self.made))
        except Exception:
            self.fleet._connection = None
            return False

    def _worked(self) -> bool:
        """Whether a body has run for every occurrence that was sent. Each line of the worker is read once."""
        if self.log.exists():
            with self.log.open() as lines:
                lines.seek(self._read)
                while (line := lines.readline()).endswith("\n"):
                    self._read = lines.tell()
                    said = json.loads(line)
                    self._ran |= {said["id"]} if said["kind"] == "body" else set()
        rows = self.ask("SELECT count(*) FROM onebeat_occurrence WHERE state <> 'skipped'")
        return bool(rows) and 0 < rows[0][0] <= len(self._ran)

    # -- the verdict --------------------------------------------------------------------------------------------------

    def verdict(self) -> Verdict:
        history = self.history()
        found = [one for one in check(history) if one.kind != Kind.LATE]
        keys = {(one.task, one.due_at) for one in history.arrivals}
        sent = sorted(row.sent_at for row in history.ledger if row.sent_at and row.task in self.recurring)
        return Verdict(
            place=str(self.fleet.place),
            fault=self.name,
            faults=len(self.faults),
            expected=sum(row.state in SENT for row in history.ledger),
            lost=sum(one.kind in LOSSES for one in found),
            copies=len(history.arrivals) - len(keys),
            ran_twice=sum(one.kind == Kind.RAN_TWICE for one in found),
            unexplained=sum(one.kind not in LOSSES | {Kind.RAN_TWICE} for one in found),
            stalls=self.stalls,
            silence=max([(later - one).total_seconds() for one, later in pairwise(sent)], default=0.0),
            findings=[*found],
        )

    def history(self) -> History:
        """What happened here, for the checker."""
        from onebeat.db.utc_columns import from_column

        named, ledger = {}, []
        for _, task, due, state, reason, through, into, message, decided, sent, claims, beat in self.fleet.query(
            f"SELECT {_COLUMNS} FROM onebeat_occurrence ORDER BY due_at, id"
        ):
            due_at = from_column(due)
            assert due_at is not None
            times = [from_column(one) for one in (through, into, decided, sent)]
            ident = str(message) if "-" in str(message) else str(_uuid(message))
            named[ident] = task, due_at
            claimed = max(claims, 0 if beat is None else 1)
            ledger.append(Row(task, due_at, state, reason, times[0], times[1], ident, times[2], times[3], claimed))
        arrivals, bodies = [], []
        for line in guarded.read(self.log):
            task, due_at = named.get(line["id"], (f"message {line['id']}", self.began))
            at = datetime.fromtimestamp(line["at"], UTC) + self.shift
            if line["kind"] == "body":
                bodies.append(Execution(task, due_at, at, at, line["attempt"]))
            elif not line["attempt"]:
                arrivals.append(Arrival(task, due_at, line["id"], seen=at))
        terms = Terms(BATCH, timedelta(seconds=LEASE), timedelta(seconds=AWAY), timedelta(seconds=LATE), _SLACK)
        names = [f"s{number}" for number in range(len(self.schedulers))]
        return History(
            {name: self._reigns(name) for name in self.made},
            self.began, self.ended, ledger, arrivals, self.faults, bodies, names, terms,
        )  # fmt: skip

    def _reigns(self, name: str) -> list[Reign]:
        begin, settled, what = self.made[name]
        made, known = datetime.fromisoformat(begin), datetime.fromisoformat(settled)
        if isinstance(what, str):
            return [Reign((datetime.fromisoformat(what),), made, known, one_off=True, named=True)]
        horizon = self.ended + 60 * SECOND
        if isinstance(what, list):
            every = cron_times(*what, _middle(made))
            times = every[bisect_right(every, made) : bisect_left(every, horizon)]
            reigns = [Reign(times, made, known)]
        else:
            from onebeat.db.utc_columns import from_column

            (anchor,) = self.fleet.query(
                "SELECT s.anchor FROM onebeat_taskstate s JOIN django_celery_beat_periodictask t ON t.id = s.task_id"
                f" WHERE t.name = '{name}'"
            )[0]
            grid = from_column(anchor)
            assert grid is not None and made <= grid <= known, "the grid begins when the task was made"

            def times_of(every: int) -> tuple[datetime, ...]:
                count = int((horizon - grid).total_seconds()) // every
                return tuple(grid + n * every * SECOND for n in range(1, count))

            reigns = [Reign(times_of(1), made, known, missed=self.recurring[name])]  # type: ignore[arg-type]
            for first, last, said in self._edited if name == "edited" else ():
                changed = {"times": times_of(said["every"])} if "every" in said else said
                span = {"begins": datetime.fromisoformat(first), "settled": datetime.fromisoformat(last)}
                reigns.append(replace(reigns[-1], **changed, **span))
        first, last = map(datetime.fromisoformat, self._over)
        return [*reigns, replace(reigns[-1], begins=first, settled=last, enabled=False)]


def _middle(instant: datetime) -> datetime:
    """The change of the clocks that a cell with a clock of its own is about."""
    from tests.proof.simulation.crons import CHANGES

    return min(CHANGES, key=lambda change: abs(change - instant))


def _uuid(value: Any) -> Any:
    import uuid

    return uuid.UUID(str(value))
