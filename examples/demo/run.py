"""onebeat's main job, for real and without a server: SQLite, Celery's transport on files, and many processes.

Sixteen processes schedule follow-ups at the same instants, two schedulers send them, a worker runs them, and one of the
schedulers is killed while it holds work. The exit code is 0 only if every promise held. About 40 seconds; `--small` 15.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fleet import HERE, Fleet
from report import HEAD, Due, Expected, judge, runs, table

PROCESSES = 16
SCHEDULERS = {
    "celery beat": ("-m", "celery", "-A", "shop", "beat", "-S", "onebeat"),
    "onebeat run": ("manage.py", "onebeat", "run"),
}
_BEGAN = time.monotonic()


@dataclass(frozen=True)
class Size:
    """How much of it."""

    instants: int
    #: Follow-ups that each process adds at each instant.
    own: int
    every_second: int
    #: From the start of the race to the first instant: room for a slow machine.
    lead_seconds: float


FULL = Size(instants=8, own=3, every_second=5, lead_seconds=8)
SMALL = Size(instants=4, own=2, every_second=3, lead_seconds=5)


def say(text: str) -> None:
    """A line of progress."""
    print(f"{time.monotonic() - _BEGAN:5.1f} s  {text}", flush=True)


def until(condition: Callable[[], Any], limit_seconds: float, what: str, pause: float = 0.05) -> Any:
    """Wait for a true answer and return it. Raises TimeoutError, naming `what`."""
    deadline = time.monotonic() + limit_seconds
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {limit_seconds:g} s in vain for {what}")
        time.sleep(pause)
    return answer


class Demo:
    """One run, step by step."""

    def __init__(self, size: Size, folder: Path, fleet: Fleet) -> None:
        self.size, self.folder, self.fleet = size, folder, fleet
        self.expected = Expected()
        self.instants: list[datetime] = []
        self.faults: list[str] = []
        self.held: set[str] = set()
        self.rows: list[list[str]] = []

    def prepare(self) -> None:
        """Tables, and the queue: declared once before many processes would do it at the same time."""
        from django.core.management import call_command
        from shop.celery import app

        say("making the database")
        call_command("migrate", verbosity=0)
        with app.connection_for_write() as connection:
            app.amqp.queues[app.conf.task_default_queue].bind(connection.default_channel).declare()
        say(f"SQLite and Celery's transport on files, in {os.path.relpath(self.folder)}")

    def start(self) -> None:
        """Two schedulers and a worker."""
        from onebeat.models import Beat

        for name, command in SCHEDULERS.items():
            self.fleet.start(name, *command)
        quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
        self.fleet.start("worker", "-m", "celery", "-A", "shop", "worker", "-c", "2", "-l", "INFO", *quiet)
        say("starting two schedulers and a worker")
        until(lambda: Beat.objects.filter(able_since__isnull=False).count() == 2, 30, "two schedulers at work")
        until(lambda: "ready." in self.fleet.log("worker").read_text(), 30, "the worker")
        say("at work: celery -A shop beat -S onebeat, manage.py onebeat run, celery -A shop worker")

    def repeat(self) -> None:
        """Tasks that are due at every second."""
        from onebeat.models import CrontabSchedule, IntervalSchedule, PeriodicTask, TaskOptions

        second, _ = IntervalSchedule.objects.get_or_create(every=1, period=IntervalSchedule.SECONDS)
        first = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
        for number in range(self.size.every_second):
            task = PeriodicTask.objects.create(
                name=f"refresh {number}", task="shop.tasks.refresh", interval=second, start_time=first
            )
            TaskOptions.objects.create(task=task, missed=TaskOptions.Missed.ALL)
            self.expected.every_second.append(task.name)
        mornings, _ = CrontabSchedule.objects.get_or_create(
            minute="0", hour="9", day_of_week="mon-fri", timezone="Europe/Paris"
        )
        PeriodicTask.objects.create(name="weekday report", task="shop.tasks.refresh", crontab=mornings)
        self.expected.first = first
        say(f"{self.size.every_second} tasks added that are due at every second")

    def race(self) -> None:
        """Many processes, the same instants."""
        first = datetime.now(UTC) + timedelta(seconds=self.size.lead_seconds)
        self.instants = [first + timedelta(seconds=1.5 * number) for number in range(self.size.instants)]
        self.expected.last = (self.instants[-1] + timedelta(seconds=3)).replace(microsecond=0)
        for number, instant in enumerate(self.instants):
            names = [f"{number}-{racer}-{one}" for racer in range(PROCESSES) for one in range(self.size.own)]
            self.expected.once.update({f"follow up order {name}": instant for name in names})
            self.expected.once[f"close batch {number}"] = instant
        count = len(self.expected.once)
        say(f"{PROCESSES} processes race to schedule {count} follow-ups at {len(self.instants)} instants")
        process = self.fleet.start(
            "race", "race.py", str(PROCESSES), str(self.size.own), *[instant.isoformat() for instant in self.instants]
        )
        self.watch(lambda: process.poll() is not None, self._added, every_seconds=1)
        self._judge_race()
        say(self._added())

    @staticmethod
    def _added() -> str:
        from onebeat.models import ClockedSchedule, PeriodicTask

        tasks = PeriodicTask.objects.filter(one_off=True).count()
        return f"  {ClockedSchedule.objects.count()} rows for instants, {tasks} follow-ups"

    def _judge_race(self) -> None:
        from onebeat.models import ClockedSchedule

        try:
            seen = json.loads(self.fleet.log("race").read_text().splitlines()[-1])
        except (IndexError, ValueError) as error:
            raise RuntimeError(f"the race did not end well: see {self.fleet.log('race')}") from error
        for number, instant in enumerate(self.instants):
            rows = ClockedSchedule.objects.filter(clocked_time=instant).count()
            created = sum(one["created"][number] for one in seen)
            shared = sum(one["tasks"][number] for one in seen)
            errors = [text for one in seen for at, text in one["errors"] if at == number]
            counts = (len(seen), rows, created, shared, len(errors))
            self.rows.append([f"{instant:%H:%M:%S.%f}"[:-3], *map(str, counts)])
            if (rows, created, shared, len(errors)) != (1, 1, 1, 0):
                self.faults.append(f"the race for {instant}: one row, one creator, no error were promised")
                self.faults += errors[:1]

    def kill(self) -> None:
        """SIGKILL, in the middle, for a scheduler that holds claimed occurrences."""
        from onebeat.models import Occurrence

        beats = {self.fleet.processes[name].pid: name for name in SCHEDULERS}
        claimed = Occurrence.objects.filter(state=Occurrence.State.CLAIMED)
        middle = self.instants[len(self.instants) // 2 - 1] - timedelta(seconds=0.2)
        self.watch(lambda: datetime.now(UTC) >= middle, self._counts)
        name, deadline = "", time.monotonic() + 6
        while not name and time.monotonic() < deadline:
            pids = list(claimed.values_list("beat__pid", flat=True))
            if pids and pids.count(pids[0]) > self.size.every_second:
                name = self._caught(beats[pids[0]])
            time.sleep(0.001)
        name = name or next(iter(SCHEDULERS))
        self.fleet.processes[name].kill()
        self.fleet.processes[name].wait()
        mine = claimed.filter(beat__pid=self.fleet.processes[name].pid)
        self.held = {str(key) for key in mine.values_list("celery_task_id", flat=True)}
        say(f"SIGKILL for `{name}` while it held {len(self.held)} claimed occurrences; the other one goes on")

    def _caught(self, name: str) -> str:
        """Bring a scheduler that has just claimed to a stand in the middle of its batch, with a part of it at the
        broker; "" if it was too quick.
        """
        from onebeat.models import Occurrence

        process = self.fleet.processes[name]
        mine = Occurrence.objects.filter(state=Occurrence.State.CLAIMED, beat__pid=process.pid)
        while self.fleet.freeze(name):
            messages = sum(len(list((self.folder / place).glob("*.msg"))) for place in ("processed", "queue"))
            if not mine.exists():
                process.send_signal(signal.SIGCONT)
                return ""
            if messages > Occurrence.objects.filter(sent_at__isnull=False).count():
                return name
            process.send_signal(signal.SIGCONT)
        return ""

    @staticmethod
    def watch(done: Callable[[], Any], text: Callable[[], str], every_seconds: float = 2, limit: float = 60) -> None:
        """Say what there is, now and then, until it is done or `limit` seconds have passed."""
        shown, deadline = time.monotonic(), time.monotonic() + limit
        while not done() and time.monotonic() < deadline:
            if time.monotonic() - shown > every_seconds:
                shown = time.monotonic()
                say(text())
            time.sleep(0.02)

    def _counts(self) -> str:
        from onebeat.models import Occurrence

        return f"  {Occurrence.objects.filter(sent_at__isnull=False).count()} sent, {len(self._runs())} run"

    def _runs(self) -> list[tuple[str, Due]]:
        return runs(self.folder / "runs.jsonl")

    def finish(self) -> None:
        """Wait until everything that was ordered has been sent and run, and stop."""
        from onebeat.models import Occurrence

        asked = self.expected.dues()
        unsent = Occurrence.objects.filter(state=Occurrence.State.CLAIMED)
        self.watch(lambda: datetime.now(UTC) > self.expected.last, self._counts)
        self.watch(lambda: asked <= {due for _, due in self._runs()} and not unsent.exists(), self._counts, limit=15)
        for name in set(SCHEDULERS) & set(self.fleet.alive()):
            code = self.fleet.stop(name)
            say(f"stopped `{name}`: exit code {code}")
            if code:
                self.faults.append(f"`{name}` did not stop in order: exit code {code}, see {self.fleet.log(name)}")
        # The transport moves each message it has delivered to one folder: all of them must have run before we count.
        queue, taken = self.folder / "queue", self.folder / "processed"
        self.watch(
            lambda: not any(queue.glob("*.msg")) and len(list(taken.iterdir())) <= len(self._runs()),
            self._counts,
            limit=10,
        )
        say(self._counts())

    def report(self) -> int:
        """The tables, and whether it held."""
        outcome = judge(self.expected, self._runs(), self.held)
        faults = self.faults + outcome.faults
        print()
        print(table(["follow-up instant (UTC)", "callers", "rows", "created", "shared task", "errors"], self.rows))
        print()
        print(table(HEAD, [group.cells() for group in outcome.groups]))
        print()
        copies = outcome.groups[-1].copies
        if self.held:
            print(
                f"The killed scheduler held {len(self.held)} occurrences. The other sent them after the lease of 3 s.\n"
                f"{copies} of them had reached the broker before the kill and so ran again, under the same task_id.\n"
                "That is the crash gap, which the promise of at-least-once names; it is no failure."
            )
        else:
            print("The killed scheduler was too quick for this machine: it held nothing at that moment.")
        for fault in faults:
            print(f"NOT HELD: {fault}")
        print(f"\n{'Not every promise held.' if faults else 'Every promise held.'} Look around: make demo-admin")
        return 1 if faults else 0


def main() -> int:
    """Parse, run, and leave no process behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="fewer instants and tasks")
    parser.add_argument("--folder", type=Path, default=HERE.parents[1] / ".demo", help="where it writes; emptied first")
    options = parser.parse_args()
    folder = options.folder.resolve()
    os.environ.update(DEMO_FOLDER=str(folder), DJANGO_SETTINGS_MODULE="shop.settings")
    if folder.exists() and any(folder.iterdir()) and not (folder / "logs").is_dir():
        parser.error(f"{folder} holds something else; it is not emptied")
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("queue", "control", "processed", "logs"):
        (folder / name).mkdir(parents=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))

    import django

    django.setup()
    fleet = Fleet(folder / "logs")
    demo = Demo(SMALL if options.small else FULL, folder, fleet)
    try:
        for step in (demo.prepare, demo.start, demo.repeat, demo.race, demo.kill, demo.finish):
            step()
        return demo.report()
    except KeyboardInterrupt:
        print("\nstopped by Ctrl-C", flush=True)
        return 130
    except (TimeoutError, RuntimeError) as error:
        print(f"NOT HELD: {error}; the logs are in {fleet.logs}")
        return 1
    finally:
        fleet.close()


if __name__ == "__main__":
    sys.exit(main())
