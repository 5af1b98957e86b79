"""What a test has in hand: a scheduler at work on its database, a clock to turn, and what was sent."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo

from django.db import router
from django.utils import timezone

from onebeat.conf import current
from onebeat.core import clock
from onebeat.core.headers import DUE_HEADER, NAME_HEADER, RUN_HEADER
from onebeat.core.recurrence import zone
from onebeat.dispatch.base import Message
from onebeat.models import Beat, Change, TaskState, change_hints
from onebeat.queries import task_lookup
from onebeat.store import batches, poll, scheduler_rows, sweep
from onebeat.testing import timeline
from onebeat.testing.moments import instant, span
from onebeat.testing.scheduler import Died, Outbox, Scheduler

#: Between two ticks of the test no scheduler counts as lost: the clock moves from one thing to the next at once.
_ALWAYS = timedelta(days=365 * 20).total_seconds()
_TICK = timedelta(milliseconds=1)
#: How often a scheduler looks when something is due and it cannot send it: at first, and in the long run.
_POLL, _LONGEST = timedelta(seconds=1), timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that has left."""

    #: Of the periodic task; of a follow-up, its key.
    name: str
    #: Of the Celery task.
    task: str
    args: list[object]
    kwargs: dict[str, object]
    #: The nominal time (UTC).
    due_at: datetime
    #: When it left, by the test's clock (UTC).
    at: datetime
    #: 0 for the schedule's own, else a requested run.
    run: int
    #: The Celery `task_id`: the same for a second copy of one occurrence.
    id: str
    #: Options of the message: queue, priority, headers and so on.
    options: dict[str, object] = field(repr=False, default_factory=dict)

    def execute(self) -> object:
        """Run the Celery task with these arguments, here and now, as a worker would. Returns what it returns."""
        from onebeat.dispatch.celery.app import task

        return task(self.task)(*self.args, **self.kwargs)


class Onebeat:
    """A scheduler at work on the test's database, under a clock that stands still until the test turns it.

    The clock begins at the present whole second. Everything of onebeat goes by it, also on a database server; your own
    `timezone.now()` does not.
    """

    def __init__(self, using: str | None = None) -> None:
        self._using = using or router.db_for_write(TaskState)
        self._stack = ExitStack()
        self._outbox = Outbox()
        self._scheduler: Scheduler | None = None
        self._armed = ""
        self._killed = False
        self._events: list[tuple[datetime, str]] = []

    def start(self) -> Onebeat:
        """Pin the clock. Call `stop` afterwards."""
        self._stack.enter_context(clock.pin(clock.host_now().replace(microsecond=0)))
        return self

    def stop(self) -> None:
        """Let the clock go."""
        with self._stack:
            self._close()

    # -- the clock --------------------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """What the clock shows (UTC)."""
        return clock.host_now()

    def at(self, moment: str | datetime) -> None:
        """Set the clock: `onebeat.at("2027-03-28 01:59 Europe/Berlin")`, or an aware datetime.

        Before anything was sent, any moment, and every task is planned as if it had just been made. Later only ahead,
        and no scheduler was at work in between, as in an `outage`. Raises `ValueError` for a moment that is none.
        """
        when = instant(moment)
        if self._outbox.messages:
            self.outage(when - self.now)
            return
        self._close()
        clock.move(when)
        self._note(f"the clock is set to {moment}")
        Change.objects.using(self._using).all().delete()
        TaskState.objects.using(self._using).all().delete()
        change_hints.changed_where(self._using, Change.Kind.TASK, task_lookup.tasks(self._using))
        self._tick()

    def advance(self, duration: str | timedelta | None = None, /, **units: float) -> list[Sent]:
        """Let time pass with a scheduler at work: `advance(days=3)`, `advance("2 hours")`. Returns what it sent.

        Each run leaves at its own time, however long the way. Raises `ValueError` for a duration that is none.
        """
        before, end = len(self._outbox.messages), self.now + span(duration, units)
        self._sweep()
        self._tick()
        pause = _POLL
        while (following := self._next()) is not None and following <= end:
            if following > self.now:
                clock.move(following)
                pause = _POLL
            else:  # it is due and has to wait: the broker does not take it
                clock.move(min(end, self.now + pause))
                pause = min(pause * 2, _LONGEST)
                if self.now == end:
                    break
            self._tick()
        clock.move(end)
        self._tick()
        self._note(f"{span(duration, units)} have passed")
        if self._armed:
            raise AssertionError(f"no scheduler came to the point {self._armed!r}: nothing was due{self._story()}")
        return self.sent[before:]

    def run_for(self, duration: str | timedelta) -> list[Sent]:
        """`advance`, for long stretches: `run_for("1 year")` takes seconds if runs are counted in hundreds."""
        return self.advance(duration)

    def outage(self, duration: str | timedelta | None = None, /, **units: float) -> list[Sent]:
        """Let time pass with no scheduler at work, then start one. Returns what it sends late."""
        before, length = len(self._outbox.messages), span(duration, units)
        self._sweep()
        self._tick()
        self._close()
        clock.move(self.now + length)
        self._note(f"{length} have passed without a scheduler")
        self._tick()
        return self.sent[before:]

    # -- what happened ----------------------------------------------------------------------------------------------

    @property
    def sent(self) -> list[Sent]:
        """Everything that has left so far, in order."""
        return [_sent(message, at) for message, at in zip(self._outbox.messages, self._outbox.sent_at, strict=True)]

    def times(self, name: str | None = None, tz: str | None = None) -> list[str]:
        """When the messages (of one task) were due, as wall clock times of a zone (default: the current one of Django):
        `["2027-03-28 03:00", ...]`."""
        of = timezone.get_current_timezone() if tz is None else zone(tz)
        return [_shown(sent.due_at, of) for sent in self.sent if name in (None, sent.name)]

    def clear(self) -> None:
        """Forget what was sent so far; the database keeps its record."""
        self._outbox.messages.clear()
        self._outbox.sent_at.clear()

    def timeline(self) -> str:
        """What happened so far, line by line, in the order of the clock. Shown by itself when a test fails."""
        return "\n".join(timeline.lines(self._using, self._events))

    # -- what goes wrong --------------------------------------------------------------------------------------------

    def kill(self, point: str) -> None:
        """The scheduler dies the next time it comes to this point, as by SIGKILL, and another one goes on.

        `point`: "claimed" (runs are taken, nothing is sent), "published" (the broker has them, that is not recorded) or
        "settled". The next `advance` fails if nothing comes there. What was claimed is sent when its lease ends.
        """
        self._running().dies_at(point)
        self._armed = point

    @property
    def broker_unavailable(self) -> bool:
        """Whether the broker does not answer. Set it."""
        return self._outbox.unavailable

    @broker_unavailable.setter
    def broker_unavailable(self, unavailable: bool) -> None:
        self._outbox.unavailable = unavailable
        self._note("the broker is unavailable" if unavailable else "the broker answers again")

    # -- the work ---------------------------------------------------------------------------------------------------

    def declare(self) -> None:
        """Sync what code declares (`schedules.py`) into the test's database."""
        from onebeat.declare import sources
        from onebeat.declare.sync import sync

        sync(self._using, [sources.of_apps()])

    def _running(self) -> Scheduler:
        if self._scheduler is None:
            settings = replace(
                current(), away_seconds=_ALWAYS, late_seconds=_ALWAYS, sweep_size=0, keep_days=0, keep_failed_days=0
            )
            self._scheduler = Scheduler(self._outbox, settings, self._using)
        return self._scheduler

    def _tick(self) -> None:
        """Everything that is to be done now."""
        try:
            while self._running().tick() == 0:
                pass
        except Died:
            self._note(f"the scheduler dies ({self._armed})")
            self._scheduler, self._armed, self._killed = None, "", True
            self._tick()

    def _sweep(self) -> None:
        """See what was changed past the ORM, which schedulers do within the poll interval."""
        sweep.Sweep(self._using, 1000).step()

    def _next(self) -> datetime | None:
        """When there is something to do next."""
        found = [poll.snapshot(self._using, None).wake_at]
        if self._killed:
            found.append(self._lease_end())
        return min(filter(None, found), default=None)

    def _lease_end(self) -> datetime | None:
        """When a run that a dead scheduler holds may be taken by another."""
        tokens = batches.open_ones(self._using).values_list("claim_token", flat=True)
        ends = filter(None, (batches.lease_end(self._using, token) for token in set(tokens)))
        return min((end + _TICK for end in ends if end > self.now), default=None)

    def _close(self) -> None:
        if self._scheduler is not None:
            self._scheduler.engine.close()
            self._scheduler = None
        # One that was killed has not said so, and would count as at work: here no scheduler is lost by the clock alone.
        for key in Beat.objects.using(self._using).filter(stopped_at=None).values_list("pk", flat=True):
            scheduler_rows.stop(self._using, key)

    def _note(self, text: str) -> None:
        self._events.append((self.now, text))

    def _story(self) -> str:
        return f"\n{self.timeline()}"


def _sent(message: Message, at: datetime) -> Sent:
    options = dict(message.options)
    headers = options["headers"]
    due_at = datetime.fromisoformat(headers[DUE_HEADER])
    return Sent(
        headers[NAME_HEADER],
        message.task,
        message.args,
        message.kwargs,
        due_at,
        at,
        headers[RUN_HEADER],
        message.id,
        options,
    )


def _shown(instant: datetime, tz: tzinfo) -> str:
    local = instant.astimezone(tz)
    return f"{local:%Y-%m-%d %H:%M}" + (f":{local:%S}" if local.second else "")
