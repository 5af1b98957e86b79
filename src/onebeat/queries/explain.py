"""Why did it not run? The facts about any task and any time, from what the tables hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db.models import QuerySet

from onebeat.conf import current
from onebeat.core import keys, nominal_times
from onebeat.core.catchup import wait
from onebeat.core.planning import State
from onebeat.core.reasons import Reason
from onebeat.core.recurrence import Recurrence
from onebeat.core.text import iso
from onebeat.core.verdict import Facts, Kind, PauseFacts, Verdict
from onebeat.db import database_clock
from onebeat.errors import InvalidArgument, UnknownTask, Unschedulable
from onebeat.models import Beat, Declared, Occurrence, PeriodicTask
from onebeat.queries import task_lookup
from onebeat.store import batches, definitions, global_pause, outages, retention, scheduler_rows, task_states

_TICK = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)


def explain(using: str, task: PeriodicTask | int | str, when: datetime) -> Verdict:
    """What became of a task at `when` (aware), or will.

    `task` is the row, its key or its name; of a deleted task the name leads to what the ledger still has. A `when` of
    whole seconds means the nominal time within that second. Raises `UnknownTask`, and `InvalidArgument` for a naive
    `when`.
    """
    if when.tzinfo is None:
        raise InvalidArgument(f"when: an aware instant is needed, not {when!r}")
    when = when.astimezone(UTC)
    key, name = _key(using, task)
    now = database_clock.now(using)
    if key is not None:
        return _Question(using, key, name, when, now).answer()
    named = Occurrence.objects.using(using).filter(task_lookup.has_key(using, "task_name", name))
    row = _recorded(named, when)
    if row is not None:
        return of_row(using, row, max(when, row.due_at), now)
    if not named.exists():
        raise UnknownTask(name, task_lookup.near(name, task_lookup.tasks(using).values_list("name", flat=True)))
    return Verdict("unknown", {"task": name, "at": iso(when), "deleted": True})


def of_row(using: str, row: Occurrence, instant: datetime, now: datetime) -> Verdict:
    """What the ledger's row says of `instant`, one of the times it stands for."""
    facts: Facts = {
        "task": row.task_name,
        "at": iso(instant),
        "due_at": iso(row.due_at),
        "run": row.run,
        "state": str(row.state),
        "decided_at": iso(row.decided_at),
    }
    instants = {
        "last_due_at": row.last_due_at,
        "into": row.into_at,
        "sent_at": row.sent_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
    }
    known = {name: iso(instant) for name, instant in instants.items() if instant is not None}
    texts = {"reason": row.reason, "detail": row.detail, "outcome": row.outcome, "error": row.error}
    facts.update({**known, **{name: text for name, text in texts.items() if text}})  # type: ignore[typeddict-item]
    if row.claims > 1:
        facts["claims"] = row.claims
    if row.sent_at is not None:
        facts["late_seconds"] = (row.sent_at - row.due_at).total_seconds()
    if row.attempt is not None:
        facts["attempt"] = row.attempt + 1
    if row.duration is not None:
        facts["duration_seconds"] = row.duration.total_seconds()
    if (outage := outages.over(using, instant)) is not None:
        facts["outage"] = {"kind": str(outage.kind), "from": iso(outage.began_at), "to": iso(outage.ended_at)}
    if row.state == Occurrence.State.SKIPPED:
        kinds: dict[str, Kind] = {Reason.COALESCED: "coalesced", Reason.MISSED: "missed"}
        return Verdict(kinds.get(row.reason, "skipped"), facts)
    facts["celery_task_id"] = str(row.celery_task_id)
    if row.state != Occurrence.State.CLAIMED:
        return Verdict("sent", facts)
    beat = Beat.objects.using(using).filter(pk=row.beat_id or 0).first()
    facts["scheduler"] = None if beat is None else str(beat)
    lease_end = batches.lease_end(using, row.claim_token)
    facts["leased"] = lease_end is not None and lease_end > now
    return Verdict("sending", facts)


def _key(using: str, task: PeriodicTask | int | str) -> tuple[int | None, str]:
    if isinstance(task, PeriodicTask):
        return task.pk, task.name
    if isinstance(task, str):
        return task_lookup.find(using, task) or (None, task)
    found = task_lookup.tasks(using).filter(pk=task).values_list("pk", "name").first()
    return found or (None, str(task))


def _recorded(found: QuerySet[Occurrence], when: datetime) -> Occurrence | None:
    """The ledger's row that stands for `when`: of that time itself, or of a range around it."""
    exact = found.filter(due_at__gte=when, due_at__lt=when + _width(when)).order_by("run", "due_at").first()
    return exact or found.filter(run=0, due_at__lte=when, last_due_at__gte=when).order_by("-due_at").first()


def _width(when: datetime) -> timedelta:
    """How far from `when` a nominal time may be to be the one that is meant."""
    return _SECOND if when.microsecond == 0 else _TICK


class _Question:
    """One task, one time, and what is known of both."""

    def __init__(self, using: str, task: int, name: str, when: datetime, now: datetime) -> None:
        self.using, self.task, self.name, self.when, self.now = using, task, name, when, now
        self.definition = definitions.fetch(using, [task]).get(task)
        self.state: State | None = task_states.read(using, [task]).get(task)
        self.recurrence, self.fault = self._rule()
        #: The nominal time that is meant, if the present rule has one there.
        self.nominal = self._nominal()
        self.facts: Facts = {"task": name, "at": iso(self.nominal or when)}

    def _rule(self) -> tuple[Recurrence | None, str]:
        if self.definition is None:
            return None, "the task is gone"
        try:
            return self.definition.check(self.state.anchor if self.state else self.now), ""
        except Unschedulable as error:
            return None, str(error)

    def _nominal(self) -> datetime | None:
        found = None if self.recurrence is None else self.recurrence.after(self.when - _TICK)
        return found if found is not None and found < self.when + _width(self.when) else None

    def answer(self) -> Verdict:
        row = _recorded(Occurrence.objects.using(self.using).filter(task_id=self.task), self.when)
        if row is not None and (row.last_due_at is None or self._within(row)):
            instant = row.due_at if row.last_due_at is None else self.nominal or self.when
            return of_row(self.using, row, instant, self.now)
        due_at = self.state.due_at if self.state else None
        if due_at is not None and (self.nominal or self.when) >= due_at:
            return self._ahead(due_at)
        return self._ahead(None) if self.when > self.now and self.nominal else self._behind()

    def _verdict(self, kind: Kind, **facts: object) -> Verdict:
        self.facts.update(facts)  # type: ignore[typeddict-item]
        return Verdict(kind, self.facts)

    def _within(self, row: Occurrence) -> bool:
        """Whether a range speaks of this time: one that the rule has, unless the rule is another by now."""
        since = self.state.definition_since if self.state else None
        return self.nominal is not None or self.recurrence is None or since is None or row.decided_at < since

    def _ahead(self, due_at: datetime | None) -> Verdict:
        """From the next undecided time on."""
        if (closed := self._closed()) is not None:
            return closed
        unplanned = self.state is None and self.definition is not None and self.definition.enabled
        if self.nominal is None or (due_at is None and not unplanned):
            return self._not_a_time()
        assert self.definition is not None and self.recurrence is not None
        if self.definition.one_off and due_at is not None and self.nominal > due_at:
            return self._verdict("not scheduled", due_at=iso(due_at))
        leaves_at = self.nominal + wait(self.recurrence, self.nominal, self.definition.policy, str(self.task))
        self.facts.update({"due_at": iso(self.nominal), "leaves_at": iso(leaves_at), "now": iso(self.now)})
        if leaves_at > self.now:
            pause = self._pause() if self.nominal > self.now else None
            return self._verdict("waiting", **({"pause": pause} if pause else {}))
        if scheduler_rows.able_since(self.using, self.now, timedelta(seconds=current().away_seconds)) is not None:
            return self._verdict("due", able=True)
        return self._verdict("due", able=False, able_until=iso(outages.able_until(self.using)))

    def _pause(self) -> PauseFacts | None:
        """The pause that the time that is meant, which is to come, falls into."""
        assert self.definition is not None and self.nominal is not None
        until = self.definition.policy.paused_until
        if until is not None and until > self.nominal:
            return {"everything": False, "by": self.definition.paused_by, "why": self.definition.paused_why}
        pause = global_pause.global_pause(self.using, self.now)
        if pause is not None and (pause.until is None or pause.until > self.nominal):
            return {"everything": True, "by": pause.by, "why": pause.why}
        return None

    def _closed(self) -> Verdict | None:
        """What keeps the task from having times at all, or this one."""
        state, since = self.state, self.state.definition_since if self.state else None
        if fault := self.fault or (state.quarantine if state else ""):
            return self._verdict("skipped", reason=Reason.QUARANTINED.value, detail=fault)
        assert self.definition is not None
        if not self.definition.enabled:
            self.facts.update({"reason": Reason.DISABLED.value, "since": iso(since)})
            if state is not None and state.one_off and state.water_mark:
                return self._finished(state.water_mark)
            row = Declared.objects.using(self.using).filter(
                task=self.task, removed_at__isnull=False, disabled_by_sync=True
            )
            if (left := row.first()) is not None and keys.has(self.name, left.name):
                return self._verdict("skipped", left_code=left.place, since=iso(left.removed_at))
            return self._verdict("skipped")
        starts, ends = self.definition.starts(), self.definition.ends()
        if self.nominal is not None and starts is not None and self.nominal < starts:
            return self._verdict("outside", starts_at=iso(starts))
        if self.nominal is not None and ends is not None and self.nominal > ends:
            return self._verdict("outside", ended_at=iso(ends))
        return None

    def _behind(self) -> Verdict:
        """Decided, or never a time of this task, and no row speaks of it."""
        pruned, state = retention.pruned_before(self.using), self.state
        if pruned is not None and self.when < pruned:
            return self._verdict("pruned", pruned_before=iso(pruned))
        if state is not None and self.when < state.anchor:
            return self._verdict("before", known_since=iso(state.anchor))
        if state is not None and state.definition_since is not None and self.when < state.definition_since:
            return self._verdict("before", since=iso(state.definition_since))
        if (closed := self._closed()) is not None:
            return closed
        if self.nominal is None:
            return self._not_a_time()
        if state is not None and state.due_at is None and state.water_mark is not None:
            return self._finished(state.water_mark)
        return self._verdict("unknown")

    def _finished(self, last: datetime) -> Verdict:
        return self._verdict("not scheduled", finished_with=iso(last))

    def _not_a_time(self) -> Verdict:
        """Not a time of this task: those around it."""
        before, after = self._neighbours()
        return self._verdict("not scheduled", before=iso(before), after=iso(after))

    def _neighbours(self) -> tuple[datetime | None, datetime | None]:
        if self.recurrence is None or self.definition is None or self.state is None:
            return None, None
        starts, ends = self.definition.starts(), self.definition.ends()
        after = nominal_times.first(self.recurrence, self.when, start_time=starts, expires=ends)
        first = nominal_times.first(self.recurrence, self.state.anchor - _TICK, start_time=starts, expires=ends)
        before = None
        if first is not None and first < self.when:
            before = nominal_times.newest(self.recurrence, first, min(self.when, ends or self.when))[0]
        return before, after
