"""The engine with one thing wrong at a time: each of these must be found out by the simulation and its checker.

    python -m tests.proof.mutants [WORDS]

plays seeds under each mutant whose name has the words, until the checker finds something, and prints how many it took.

Two that one may miss here cannot be told from the engine by any history. `settle.sent` that asks for the state and not
for the claim: whoever records has seen the broker take the message, so it says what is true, and the other holder then
leaves it. `settle.release` and `postpone` that ask for the state alone: who lost the claim learned that before the
flush and has let go, so it could give back what is another's only in the moment in which promise 4 (b) lies.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any
from unittest.mock import patch
from uuid import uuid4

from tests.proof.history import Finding, Kind

#: A mutant that has lived through so many runs has got away.
LIMIT = 400
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Mutant:
    name: str
    #: What to replace, as `module:name` or `module:Class.name`; and by what, given the original.
    where: str
    by: Callable[[Any], Any]
    #: What the checker is to say, one of these first.
    kinds: tuple[Kind, ...]

    @contextmanager
    def alive(self) -> Iterator[None]:
        module, _, name = self.where.partition(":")
        within, _, attribute = name.rpartition(".")
        owner = import_module(module)
        if within:
            owner = getattr(owner, within)
        with patch.object(owner, attribute, self.by(getattr(owner, attribute))):
            yield


def _trusting(still_mine: Any) -> Any:
    return lambda using, token, ids: set(ids)


def _overwriting(sent: Any) -> Any:
    from onebeat.models import Occurrence
    from onebeat.models.instants import DatabaseNow

    def anything(using: str, token: int, ids: Iterable[int]) -> int:
        rows = Occurrence.objects.using(using).filter(pk__in=list(ids))
        return rows.update(state=Occurrence.State.SENT, sent_at=DatabaseNow())

    return anything


def _renaming(lost: Any) -> Any:
    def renamed(using: str, terms: Any) -> Any:
        batch = lost(using, terms)
        batch.occurrences = [replace(one, celery_task_id=uuid4()) for one in batch.occurrences]
        return batch

    return renamed


def _sending_again(sent: Any) -> Any:
    """The reply to COMMIT is lost, that is taken for a failure, and all goes out again under another name."""
    from django.db import Error

    from onebeat.models import Occurrence
    from onebeat.store import batches

    failed: set[int] = set()

    def renamed(using: str, token: int, ids: Iterable[int]) -> int:
        for pk in failed:
            alone = batches.new_token(_LONG_AGO)
            Occurrence.objects.using(using).filter(pk=pk).update(
                state=Occurrence.State.CLAIMED, celery_task_id=uuid4(), claim_token=alone
            )
            batches.add(using, alone, None, _LONG_AGO)
        failed.clear()
        try:
            return int(sent(using, token, ids))
        except Error:
            failed.update(ids)
            raise

    return renamed


def _losing_one(claim: Any) -> Any:
    """The newest of a claim gets no row, and its task waits for its next time all the same."""
    return lambda using, sends, **terms: claim(using, [*sends][:-1], **terms)


def _from_now(waiting: Any) -> Any:
    def moved(state: Any, definition: Any, recurrence: Any, due_at: datetime | None, now: datetime) -> Any:
        later = due_at and recurrence.after(due_at)
        return waiting(state, definition, recurrence, later and now + (later - due_at), now)

    return moved


def _after_now(waiting: Any) -> Any:
    def moved(state: Any, definition: Any, recurrence: Any, due_at: datetime | None, now: datetime) -> Any:
        return waiting(state, definition, recurrence, due_at and recurrence.after(now), now)

    return moved


def _silent(skip: Any) -> Any:
    return lambda using, skips, now: None


def _too_wide(skip_before: Any) -> Any:
    def wide(walk: Any, *args: Any, **words: Any) -> None:
        before = len(walk.skips)
        skip_before(walk, *args, **words)
        if len(walk.skips) > before and walk.at is not None:
            walk.skips[-1] = replace(walk.skips[-1], last=walk.at)

    return wide


def _of_the_host(database_now: Any) -> Any:
    from onebeat.core import clock

    return clock.host_now


def _unguarded(begin: Any) -> Any:
    from onebeat.core.attempts import StartResult, StartVerdict

    def let_in(*args: Any, **words: Any) -> StartResult:
        begin(*args, **words)
        return StartResult(StartVerdict.STARTED)

    return let_in


def _empty_handed(lost: Any) -> Any:
    from onebeat.store.claims import Batch

    return lambda using, terms: Batch(0, _LONG_AGO)


def _again_and_again(decide: Any) -> Any:
    return lambda *args, **words: decide(*args, **{**words, "one_off": False})


MUTANTS = (
    Mutant("no look at the lease before a flush", "onebeat.store.settling:still_mine", _trusting, (Kind.TWICE,)),
    Mutant("recorded at the end alone", "onebeat.engine.publishing:_RECORDS_A_LEASE", lambda _: 0.001, (Kind.TWICE,)),
    Mutant("settled whoever has it", "onebeat.store.settling:sent", _overwriting, (Kind.FORGOTTEN,)),
    Mutant("recovered under another id", "onebeat.store.recovery:reclaim", _renaming, (Kind.MIXED,)),
    Mutant(
        "recovered and not decided again",
        "onebeat.store.recovery:_settled",
        lambda _: lambda *args: None,
        (Kind.STALE,),
    ),
    Mutant("never recovered", "onebeat.store.recovery:reclaim", _empty_handed, (Kind.UNSENT,)),
    Mutant(
        "claimed while the broker is away",
        "tests.proof.simulation.broker:Link.ready",
        lambda _: lambda link: True,
        (Kind.HASTY,),
    ),
    Mutant("moved on without an occurrence", "onebeat.store.occurrences:claim", _losing_one, (Kind.LOST,)),
    Mutant(
        "sent again when the reply is lost", "onebeat.store.settling:sent", _sending_again, (Kind.MIXED, Kind.TWICE)
    ),
    Mutant("the next time from now", "onebeat.core.planning:waiting", _from_now, (Kind.UNSCHEDULED, Kind.LOST)),
    Mutant("the next time after now", "onebeat.core.planning:waiting", _after_now, (Kind.LOST,)),
    Mutant("skipped and not recorded", "onebeat.store.occurrences:skip", _silent, (Kind.LOST,)),
    Mutant(
        "ranges too wide by one",
        "onebeat.core.catchup:_Walk.skip_before",
        _too_wide,
        (Kind.CONTRADICTION, Kind.UNREASONED, Kind.UNSCHEDULED),
    ),
    Mutant("the host's clock decides", "onebeat.core.clock:database_now", _of_the_host, (Kind.EARLY, Kind.UNREASONED)),
    Mutant("no guard", "onebeat.store.attempts:begin", _unguarded, (Kind.RAN_TWICE,)),
    Mutant(
        "two runs at a time",
        "onebeat.core.claiming:ClaimContext.running",
        lambda _: lambda *args: None,
        (Kind.OVERLAPPED,),
    ),
    Mutant("one-offs for ever", "onebeat.core.catchup:decide", _again_and_again, (Kind.UNSCHEDULED,)),
)


def lives(mutant: Mutant, first: int = 1, limit: int = LIMIT) -> tuple[int, list[Finding]]:
    """How many seeds it took until it was found out, and what was found; nothing if it got away."""
    from tests.proof.simulation import seeds

    with mutant.alive():
        for number in range(limit):
            # A run that ends in an error is no finding of the checker's: the next one shows more.
            found = [one for one in seeds.one(first + number) if isinstance(one, Finding)]
            if found:
                return number + 1, found
    return limit, []


def main(words: str) -> int:
    from tests.proof.simulation.__main__ import in_memory
    from tests.proof.simulation.seeds import prepare

    logging.disable()
    escaped = 0
    with in_memory():
        prepare()
        for mutant in MUTANTS:
            if words not in mutant.name:
                continue
            began = time.process_time()
            number, found = lives(mutant)
            took = time.process_time() - began
            right = bool(found) and bool({one.kind for one in found} & set(mutant.kinds))
            escaped += not right
            text = f"{number} seeds, {found[0]}" if found else f"not in {number} seeds"
            print(f"{took:5.1f} s {mutant.name}: {text}", flush=True)
            if found and not right:
                print(f"    expected: {', '.join(mutant.kinds)}")
    return int(bool(escaped))


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
