"""Why did it not run? A verdict for any task and any time, from what the tables hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from onebeat.conf import current
from onebeat.core import nominal_times as rules
from onebeat.core.catchup import wait
from onebeat.core.planning import State
from onebeat.core.recurrence import Recurrence
from onebeat.db import database_clock
from onebeat.errors import InvalidArgument, UnknownTask, Unschedulable
from onebeat.models import Declared, Occurrence, PeriodicTask
from onebeat.queries import task_lookup
from onebeat.queries.verdicts import Verdict, iso, of_row, shown
from onebeat.store import definitions, global_pause, outages, retention, scheduler_rows, task_states
from onebeat.store.definitions import COPIED, Definition

_TICK = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)


def explain(using: str, task: PeriodicTask | int | str, when: datetime) -> Verdict:
    """What became of a task at `when` (aware), or will.

    `task` is the row, its key or its name; of a deleted task the name leads to what the ledger still has. A `when` of
    whole seconds means the nominal time within that second. Raises `UnknownTask`, and ValueError for a naive `when`.
    """
    if when.tzinfo is None:
        raise InvalidArgument(f"when: an aware instant is needed, not {when!r}")
    when = when.astimezone(UTC)
    key, name = _key(using, task)
    now = database_clock.now(using)
    if key is None:
        named = Occurrence.objects.using(using).filter(task_name=name)
        row = _recorded(named, when)
        if row is not None:
            return of_row(using, row, max(when, row.due_at), now)
        if not named.exists():
            raise UnknownTask(name, task_lookup.near(name, task_lookup.tasks(using).values_list("name", flat=True)))
        return Verdict(
            "unknown", f"{name!r} has been deleted, and nothing is recorded of {shown(when)}.", {"task": name}
        )
    return _Question(using, key, name, when, now).answer()


def _key(using: str, task: PeriodicTask | int | str) -> tuple[int | None, str]:
    if isinstance(task, PeriodicTask):
        return task.pk, task.name
    field = "pk" if isinstance(task, int) else "name"
    found = PeriodicTask._base_manager.using(using).filter(**{field: task}).values_list("pk", "name").first()
    return found or (None, str(task))


def _recorded(found: QuerySet[Occurrence, Any], when: datetime) -> Occurrence | None:
    """The ledger's row that stands for `when`: of that time itself, or of a range around it."""
    within = when + (_SECOND if when.microsecond == 0 else _TICK)
    exact = found.filter(due_at__gte=when, due_at__lt=within).order_by("run", "due_at").first()
    return exact or found.filter(run=0, due_at__lte=when, last_due_at__gte=when).order_by("-due_at").first()


class _Question:
    """One task, one time, and what is known of both."""

    def __init__(self, using: str, task: int, name: str, when: datetime, now: datetime) -> None:
        self.using, self.task, self.name, self.when, self.now = using, task, name, when, now
        self.definition: Definition | None = definitions.fetch(using, [task]).get(task)
        self.state: State | None = task_states.read(using, [task]).get(task)
        self.recurrence, self.bad = self._rule()
        #: The nominal time that is meant, if the present rule has one there.
        self.nominal = self._nominal()
        self.facts: dict[str, Any] = {"task": name, "at": iso(when)}

    def _rule(self) -> tuple[Recurrence | None, str]:
        if self.definition is None:
            return None, "the task is gone"
        try:
            return self.definition.check(self.state.anchor if self.state else self.now), ""
        except Unschedulable as bad:
            return None, str(bad)

    def _nominal(self) -> datetime | None:
        if self.recurrence is None:
            return None
        found = self.recurrence.after(self.when - _TICK)
        within = self.when + (_SECOND if self.when.microsecond == 0 else _TICK)
        return found if found is not None and found < within else None

    def answer(self) -> Verdict:
        row = _recorded(Occurrence.objects.using(self.using).filter(task_id=self.task), self.when)
        if row is not None and (row.last_due_at is None or self._within(row)):
            instant = row.due_at if row.last_due_at is None else self.nominal or self.when
            return of_row(self.using, row, instant, self.now)
        due_at = self.state.due_at if self.state else None
        if due_at is not None and (self.nominal or self.when) >= due_at:
            return self._ahead(due_at)
        return self._ahead(None) if self.when > self.now and self.nominal else self._behind()

    def _within(self, row: Occurrence) -> bool:
        """Whether a range speaks of this time: one that the rule has, unless the rule is another by now."""
        since = self.state.definition_since if self.state else None
        return self.nominal is not None or self.recurrence is None or since is None or row.decided_at < since

    def _ahead(self, due_at: datetime | None) -> Verdict:
        """From the next undecided time on."""
        if (closed := self._closed()) is not None:
            return closed
        if self.nominal is None or (due_at is None and not self._waits()):
            return self._off()
        what = f"{self.name!r} at {shown(self.nominal)}"
        assert self.definition is not None and self.recurrence is not None
        if self.definition.one_off and due_at is not None and self.nominal > due_at:
            self.facts["due_at"] = iso(due_at)
            return Verdict("not scheduled", f"{what} has no run: the task runs once, at {shown(due_at)}.", self.facts)
        held = wait(self.recurrence, self.nominal, self.definition.policy, str(self.task))
        self.facts |= {"due_at": iso(self.nominal), "leaves_at": iso(self.nominal + held)}
        if self.nominal > self.now:
            paused = self._paused()
            if paused:
                return Verdict("waiting", f"{what} is to come, and is to be skipped: {paused}.", self.facts)
            jitter = f", to leave at {shown(self.nominal + held)}" if held else ""
            return Verdict("waiting", f"{what} is to come{jitter}.", self.facts)
        if self.nominal + held > self.now:
            return Verdict("waiting", f"{what} is to leave at {shown(self.nominal + held)}: its jitter.", self.facts)
        return Verdict("due", f"{what} is due and not decided yet: {self._able()}.", self.facts)

    def _waits(self) -> bool:
        return self.state is None and self.definition is not None and self.definition.enabled

    def _able(self) -> str:
        """Whether somebody could send it now."""
        if scheduler_rows.able_since(self.using, self.now, timedelta(seconds=current().away_seconds)) is not None:
            return "the schedulers are at work"
        last = outages.able_until(self.using)
        self.facts["able_until"] = iso(last)
        return f"no scheduler has been able to send since {shown(last)}" if last else "no scheduler has ever run"

    def _paused(self) -> str:
        """Why the time that is meant, which is to come, falls into a pause; empty if it does not."""
        assert self.definition is not None and self.nominal is not None
        until = self.definition.policy.paused_until
        if until is not None and until > self.nominal:
            return f"the task is paused{global_pause.words(self.definition.paused_by, self.definition.paused_why)}"
        pause = global_pause.global_pause(self.using, self.now)
        return pause.words() if pause and (pause.until is None or pause.until > self.nominal) else ""

    def _closed(self) -> Verdict | None:
        """What keeps the task from having times at all, or this one."""
        what = f"{self.name!r} at {shown(self.nominal or self.when)}"
        since = self.state.definition_since if self.state else None
        tail = f" (since {shown(since)})" if since else ""
        if (self.state and self.state.quarantine) or self.bad:
            reason = self.bad or (self.state.quarantine if self.state else "")
            self.facts |= {"reason": "quarantined", "detail": reason}
            return Verdict("skipped", f"{what} has no run: the task is quarantined: {reason}.", self.facts)
        if self.definition is not None and not self.definition.enabled:
            self.facts |= {"reason": "disabled", "since": iso(since)}
            done = self.state and self.state.copied[COPIED.index("one_off")] and self.state.water_mark
            if done:
                return self._finished()
            if (gone := _left_code(self.using, self.name)) is not None:
                tail = f", since it is no longer declared in {gone[0]} (since {shown(gone[1])})"
                self.facts |= {"detail": f"no longer declared in {gone[0]}", "since": iso(gone[1])}
            return Verdict("skipped", f"{what} has no run: the task is disabled{tail}.", self.facts)
        return self._outside(what)

    def _outside(self, what: str) -> Verdict | None:
        if self.definition is None or self.nominal is None:
            return None
        starts, ends = self.definition.starts(), self.definition.ends()
        if starts is not None and self.nominal < starts:
            return Verdict("outside", f"{what} has no run: the task starts at {shown(starts)}.", self.facts)
        if ends is not None and self.nominal > ends:
            return Verdict("outside", f"{what} has no run: the task ended at {shown(ends)}.", self.facts)
        return None

    def _behind(self) -> Verdict:
        """Decided, or never a time of this task, and no row speaks of it."""
        what = f"{self.name!r} at {shown(self.nominal or self.when)}"
        pruned = retention.pruned_before(self.using)
        if pruned is not None and self.when < pruned:
            self.facts["pruned_before"] = iso(pruned)
            return Verdict("pruned", f"{what} is older than what is kept (since {shown(pruned)}).", self.facts)
        state = self.state
        if state is not None and self.when < state.anchor:
            self.facts["known_since"] = iso(state.anchor)
            return Verdict(
                "before", f"{what}: the task exists, or is known here, since {shown(state.anchor)}.", self.facts
            )
        if state is not None and state.definition_since is not None and self.when < state.definition_since:
            self.facts["since"] = iso(state.definition_since)
            since, words = state.definition_since, "the task has its present schedule since"
            return Verdict("before", f"{what}: nothing is recorded; {words} {shown(since)}.", self.facts)
        if (closed := self._closed()) is not None:
            return closed
        if self.nominal is None:
            return self._off()
        if state is not None and state.due_at is None and state.water_mark is not None:
            return self._finished()
        return Verdict("unknown", f"{what}: nothing is recorded of it.", self.facts)

    def _finished(self) -> Verdict:
        assert self.state is not None and self.state.water_mark is not None
        self.facts["finished_with"] = iso(self.state.water_mark)
        what, last = f"{self.name!r} at {shown(self.when)}", shown(self.state.water_mark)
        return Verdict("not scheduled", f"{what} has no run: the task has finished, with {last}.", self.facts)

    def _off(self) -> Verdict:
        """Not a time of this task: those around it."""
        before, after = self._neighbours()
        self.facts |= {"before": iso(before), "after": iso(after)}
        near = [f"the one before is {shown(before)}"] if before else []
        near += [f"the next is {shown(after)}"] if after else ["none follows"]
        what = f"{self.name!r} has no run at {shown(self.when)}"
        return Verdict("not scheduled", f"{what}: it is not on its schedule; {', '.join(near)}.", self.facts)

    def _neighbours(self) -> tuple[datetime | None, datetime | None]:
        if self.recurrence is None or self.definition is None or self.state is None:
            return None, None
        bounds = {"start_time": self.definition.starts(), "expires": self.definition.ends()}
        after = rules.first(self.recurrence, self.when, **bounds)
        first = rules.first(self.recurrence, self.state.anchor - _TICK, **bounds)
        before = None
        if first is not None and first < self.when:
            before = rules.newest(self.recurrence, first, min(self.when, bounds["expires"] or self.when))[0]
        return before, after


def _left_code(using: str, name: str) -> tuple[str, datetime] | None:
    """Where a task was declared that the sync has disabled when it left the code, and when that was; else None."""
    row = Declared.objects.using(using).filter(name=name, left_at__isnull=False, disabled_by_us=True).first()
    return None if row is None or not isinstance(row.left_at, datetime) else (row.place, row.left_at)
