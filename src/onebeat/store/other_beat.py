"""Detect another beat on the same tables, such as the old one that nobody stopped, from what it writes; confirm it with
a canary task; publish the result to all schedulers as one fact.

The canary is an enabled one-off task that has one run on record. django-celery-beat, from 2.0 on, disables such a task
when it reads it, and sends nothing; onebeat takes it for finished and leaves it alone. So if a canary that was made a
moment ago is disabled, another beat is at work: no other evidence would be enough to stop sending.
docs/adr/0019-two-beats.md has the reasons.
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError

from onebeat.core import nominal_times as rules
from onebeat.core import planning
from onebeat.core.catchup import Skip
from onebeat.core.reasons import Reason
from onebeat.db import transactions
from onebeat.errors import Unschedulable
from onebeat.models import Beat, Fact, IntervalSchedule, PeriodicTask, TaskState
from onebeat.models.instants import from_their_run, from_utc, to_utc
from onebeat.store import definitions, occurrences, plans, task_states

logger = logging.getLogger("onebeat")

CANARY = "onebeat: is another beat at work?"
_FACT = "other_beat"
#: The interval of the canary's schedule, which nobody else uses: a thousand years, in days.
_EVERY = 365_250
#: So near to a run of ours lies what another beat writes as its own run of the same time.
_NEAR = timedelta(seconds=10)
#: So many foreign writes within so long ask for a canary.
_SIGHTINGS, _WITHIN = 3, timedelta(minutes=15)
#: A beat looks at its tasks every five seconds, and takes its time to read many.
_WAIT = timedelta(seconds=20)
#: How long one proof counts. Another canary is made before it ends.
_COUNTS = timedelta(seconds=60)
#: How often the fact is read.
_ASK = timedelta(seconds=2)
#: How long no canary is made after one that no beat has disabled.
_REST = timedelta(minutes=10)
#: Of so many tasks a scheduler remembers what it wrote.
_REMEMBERED = 20_000
_BATCH = 500


class ForeignWriteDetector:
    """What one scheduler wrote as the last runs of tasks, and what it found in their place."""

    def __init__(self) -> None:
        self._written: dict[int, datetime] = {}
        self._seen: list[datetime] = []

    def found(self, task: int, last_run_at: datetime | None, changed: datetime, sent: datetime) -> None:
        """What a task's row says before this scheduler writes that it was sent at `sent`.

        Our own writers, and code that updates the one column, leave `date_changed` alone; a beat saves the whole row.
        """
        mine = self._written.get(task)
        if mine is None or last_run_at is None or to_utc(last_run_at) == mine:
            return
        for read in (to_utc, from_their_run):
            foreign = read(last_run_at)
            near = min(abs(foreign - mine), abs(foreign - sent)) <= _NEAR
            if near and to_utc(changed) >= foreign:
                self._seen.append(sent)
                return

    def wrote(self, task: int, at: datetime) -> None:
        """What the row says now."""
        if task in self._written or len(self._written) < _REMEMBERED:
            self._written[task] = at

    def suspects(self, now: datetime) -> bool:
        """Whether that has happened too often to be chance."""
        self._seen = [at for at in self._seen if now - at < _WITHIN]
        return len(self._seen) >= _SIGHTINGS

    def forget(self) -> None:
        """Begin to count anew."""
        self._seen.clear()


class OtherBeat:
    """Whether to stand by because another beat sends what this one would send. All schedulers come to one answer."""

    def __init__(self, using: str, detector: ForeignWriteDetector) -> None:
        self.using = using
        self.detector = detector
        self.standby = False
        self._asked: datetime | None = None
        self._made_at: datetime | None = None
        self._rested: datetime | None = None
        self._proved: datetime | None = None

    def step(self, now: datetime) -> bool:
        """To be called in every tick. Returns whether to stand by."""
        if self._asked is not None and now - self._asked < _ASK and self._made_at is None:
            return self.standby
        if self._asked is None:
            self._remove(older_than=now - 3 * _WAIT)
        self._asked = now
        if self._made_at is not None:
            self._look(now)
        classic = _classic(self.using, now)
        self._proved = last_proof(self.using)
        proved = self._proved is not None and now - self._proved < _COUNTS
        again = proved and self._proved is not None and now - self._proved > _COUNTS / 2
        rested = self._rested is None or now - self._rested > _REST
        if self._made_at is None and (again or (rested and not proved and self.detector.suspects(now))):
            self._make_canary(now)
        self._stand_by(proved or bool(classic), classic, now)
        return self.standby

    def close(self) -> None:
        """Remove the canary."""
        if self._made_at is not None:
            self._remove()

    def _stand_by(self, standby: bool, classic: str, now: datetime) -> None:
        if standby and not self.standby:
            what = f"a scheduler in classic mode ({classic})" if classic else "an old django-celery-beat"
            logger.error("%s sends the same tasks: onebeat sends nothing until it has stopped", what)
        if self.standby and not standby:
            logger.warning("the other beat has stopped: onebeat goes on")
            leave_out(self.using, now)
        self.standby = standby

    def _make_canary(self, now: datetime) -> None:
        try:
            with transactions.short_transaction(self.using):
                schedule, _ = IntervalSchedule.objects.using(self.using).get_or_create(every=_EVERY, period="days")
                PeriodicTask.objects.using(self.using).create(
                    name=CANARY, task=CANARY, interval=schedule, one_off=True, total_run_count=1,
                    description="Made by onebeat for some seconds. A beat that disables it is not onebeat.",
                )  # fmt: skip
                # How old it is is asked by the database's clock: saving has written the host's.
                rows = PeriodicTask._base_manager.using(self.using).filter(name=CANARY)
                rows.update(date_changed=from_utc(now))
        except IntegrityError:  # another scheduler has made it, and publishes what it finds
            self._rested = now
            self._remove(older_than=now - 3 * _WAIT)  # or made it and was killed
            return
        plans.touch(self.using)
        self._made_at = now

    def _look(self, now: datetime) -> None:
        assert self._made_at is not None
        rows = PeriodicTask._base_manager.using(self.using).filter(name=CANARY)
        enabled = rows.values_list("enabled", flat=True).first()
        if enabled is not False and now - self._made_at <= _WAIT:
            return
        if enabled is False:
            Fact.objects.using(self.using).update_or_create(
                name=_FACT, defaults={"value": json.dumps(now.isoformat())}
            )  # fmt: skip
        else:
            self._rested = now
        self.detector.forget()
        self._remove()

    def _remove(self, older_than: datetime | None = None) -> None:
        rows = PeriodicTask._base_manager.using(self.using).filter(name=CANARY)
        if older_than is not None:
            rows = rows.filter(date_changed__lt=from_utc(older_than))
        if rows.delete()[0]:
            schedules = IntervalSchedule._base_manager.using(self.using).filter(every=_EVERY, period="days")
            schedules.filter(periodictask=None).delete()
        self._made_at = None


def last_proof(using: str) -> datetime | None:
    """When another beat was last proved to be at work; None if never."""
    value = Fact.objects.using(using).filter(name=_FACT).values_list("value", flat=True).first()
    return None if value is None else datetime.fromisoformat(json.loads(value))


def at_work(using: str, now: datetime) -> str:
    """What other beat is at work, in words; empty if none is known."""
    if classic := _classic(using, now):
        return f"a scheduler in classic mode ({classic})"
    proved = last_proof(using)
    return "an old django-celery-beat" if proved is not None and now - proved < _COUNTS else ""


def _classic(using: str, now: datetime) -> str:
    rows: Any = Beat.objects.using(using).filter(
        stopped_at=None, unable_reason=Beat.Unable.CLASSIC, seen_at__gt=now - _COUNTS
    )
    row = rows.first()
    return "" if row is None else str(row)


def _ran(value: datetime, now: datetime) -> datetime:
    """A `last_run_at` of either's writing: without USE_TZ the two are not the same, and none lies in the future."""
    return max((at for at in (to_utc(value), from_their_run(value)) if at <= now), default=to_utc(value))


def leave_out(using: str, now: datetime) -> None:
    """What has come due meanwhile and was sent by the other beat, as its run state says, is not sent again."""
    due = TaskState.objects.using(using).filter(due_at__lte=now).order_by("pk")
    after = 0
    while ids := list(due.filter(pk__gt=after).values_list("pk", flat=True)[:_BATCH]):
        after = ids[-1]
        with transactions.short_transaction(using):
            planned, skips, moved = task_states.lock(using, ids), [], []
            for key, one in definitions.fetch(using, planned).items():
                state = planned[key]
                last = one.last_run_at and _ran(one.last_run_at, now)
                if last is None or state.due_at is None or last < state.due_at or one.copied() != state.copied:
                    continue
                try:
                    recurrence = one.check(state.anchor)
                except Unschedulable:
                    continue
                newest, following = rules.newest(recurrence, state.due_at, last)
                ends = one.ends()
                following = None if one.one_off or (ends and following and following > ends) else following
                skips.append(
                    occurrences.Skipped(
                        one, state.uid, Skip(state.due_at, newest, Reason.ELSEWHERE), "another beat was at work"
                    )
                )
                after_all = planning.waiting(state, one, recurrence, following, now)
                moved.append(replace(after_all, water_mark=newest))
            occurrences.skip(using, skips, now)
            task_states.write(using, moved, plan=False)
