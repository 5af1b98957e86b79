"""Plans are made again when the time zone data is another than they were made with: it is part of the answer."""

from __future__ import annotations

import logging
from datetime import datetime

from onebeat.core import nominal_times as rules
from onebeat.core import planning
from onebeat.core.planning import State
from onebeat.core.recurrence import tzdata_version
from onebeat.db import database_clock, transactions
from onebeat.errors import Unschedulable
from onebeat.models import Fact, PeriodicTask
from onebeat.store import definitions, task_states
from onebeat.store.definitions import Definition

logger = logging.getLogger("onebeat")

_FACT = "tzdata"


class ZoneData:
    """Looks once, when a scheduler starts, and then goes through the crontabs in portions of `size` if need be.

    Two schedulers that do so at once come to the same plans. An overdue time stays: it was right when its turn came.
    """

    def __init__(self, using: str, size: int) -> None:
        self.using = using
        self.size = size
        self._version = tzdata_version()
        self._after: int | None = None
        self._looked = False
        #: Tasks whose plans somebody else held when it came to them.
        self._left: list[int] = []

    def step(self) -> bool:
        """Do the next portion, if there is one. Returns whether there was."""
        if not self._looked:
            self._looked = True
            facts = Fact.objects.using(self.using)
            known, new = facts.get_or_create(name=_FACT, defaults={"value": self._version})
            # A host with older data, restarted beside others with newer ones, plans nothing again: newer wins.
            if not new and _age(known.value) < _age(self._version):
                logger.warning("time zone data went from %s to %s: planning crontabs again", known.value, self._version)
                self._after = 0
        if self._after is None and not self._left:
            return False
        if self._after is None:
            left, self._left = self._left[: self.size], self._left[self.size :]
            self._plan(left)
        else:
            self._after = self._portion(self._after)
        if self._after is None and not self._left:
            Fact.objects.using(self.using).filter(name=_FACT).update(value=self._version)
        return True

    def _portion(self, after: int) -> int | None:
        """Plan the crontabs of the tasks that follow `after` again. Returns the last of them; None at the end."""
        rows = PeriodicTask._base_manager.using(self.using).filter(pk__gt=after, crontab__isnull=False)
        ids = list(rows.order_by("pk").values_list("pk", flat=True)[: self.size])
        if not ids:
            return None
        self._plan(ids)
        return ids[-1]

    def _plan(self, ids: list[int]) -> None:
        """Plan these again; what somebody else holds is left for later."""
        with transactions.short_transaction(self.using):
            planned = task_states.lock(self.using, ids)
            self._left += sorted(task_states.existing(self.using, ids) - planned.keys())
            found = definitions.fetch(self.using, planned)
            now = database_clock.now(self.using)
            moved = [_again(found[task], state, now) for task, state in planned.items() if task in found]
            task_states.write(self.using, [state for state in moved if state is not None], plan=False)


def _age(version: str) -> tuple[int, str]:
    """What versions of the data are compared by: "2025b" is newer than "2025a"; one that nobody knows is the oldest."""
    year = version[:4]
    return (int(year), version[4:]) if year.isdigit() else (0, "")


def _again(definition: Definition, state: State, now: datetime) -> State | None:
    """The state with the time that the present data give; None if nothing is to be changed."""
    if state.due_at is None or state.due_at <= now or definition.copied() != state.copied:
        return None
    try:
        recurrence = definition.check(state.anchor)
    except Unschedulable:
        return None
    reference = max(now, state.water_mark) if state.water_mark else now
    due_at = rules.first(recurrence, reference, start_time=definition.starts(), expires=definition.ends())
    after = planning.waiting(state, definition, recurrence, due_at, now)
    return after if after != state else None
