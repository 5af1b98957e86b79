"""The history checker finds each kind of wrong in a history made by hand, and nothing in good ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.proof.checker import check
from tests.proof.history import Arrival, Execution, Fault, Finding, History, Kind, Reign, Row, Terms, Trouble

START = datetime(2026, 3, 10, 10, tzinfo=UTC)
TERMS = Terms(
    batch=2, lease=timedelta(seconds=10), away=timedelta(seconds=8), late=timedelta(seconds=60),
    slack=timedelta(seconds=1),
)  # fmt: skip
END = 100
STATES = {"sent": "sent", "claimed": "claimed"}


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def reign(*times: float, begins: float = 0, **fields: Any) -> Reign:
    return Reign(tuple(map(at, times)), at(begins), at(begins), **fields)


def row(due_at: float, state: str = "sent", **fields: Any) -> Row:
    """`state`: sent, claimed, or the reason it was skipped. `decided`: how many seconds later."""
    late = fields.pop("decided", 0.5)
    for name in ("through", "into"):
        if name in fields:
            fields[name] = at(fields[name])
    skipped = state not in STATES
    named = {"state": "skipped", "reason": state} if skipped else {"state": state, "claims": 1}
    found = {"message_id": f"id {due_at}", "decided_at": at(due_at + late), **named, **fields}
    return Row("t", at(due_at), sent_at=at(due_at + late) if state == "sent" else None, **found)


def came(due_at: float, late: float = 0.5, scheduler: str = "a", **fields: Any) -> Arrival:
    return Arrival(
        "t", at(due_at), **{"message_id": f"id {due_at}", "at": at(due_at + late), **fields}, scheduler=scheduler
    )


def body(due_at: float, began: float, ended: float | None, **fields: Any) -> Execution:
    return Execution("t", at(due_at), at(began), None if ended is None else at(ended), **fields)


def fault(kind: str, began: float, ended: float, scheduler: str = "", **fields: Any) -> Fault:
    return Fault(Trouble(kind), at(began), at(ended), scheduler, **fields)


def history(
    reigns: Reign | list[Reign], rows: list[Row], arrivals: list[Arrival], *faults: Fault, **more: Any
) -> History:
    tasks = {"t": reigns if isinstance(reigns, list) else [reigns]}
    more = {"schedulers": ("a", "b"), "terms": TERMS, **more}
    return History(tasks, START, at(END), rows, arrivals, faults, **more)


def plain() -> History:
    """Due at 10, 20 and 30, each sent half a second later."""
    times = (10, 20, 30)
    return history(reign(*times), [row(one) for one in times], [came(one) for one in times])


def without(found: History, *, rows: int | None = None, arrivals: int | None = None) -> History:
    """With one row, one message or both taken away."""
    kept = [one for number, one in enumerate(found.ledger) if number != rows]
    return replace(
        found, ledger=kept, arrivals=[one for number, one in enumerate(found.arrivals) if number != arrivals]
    )


DOWN = fault("stopped", 15, 75)


def outage(missed: Any, rows: list[Row], arrivals: list[Arrival], **fields: Any) -> History:
    """Nobody was able to send from 15 to 75; due every ten seconds."""
    times = tuple(range(10, 100, 10))
    rows = [row(10), *rows, row(80), row(90)]
    return history(reign(*times, missed=missed, **fields), rows, [came(10), *arrivals, came(80), came(90)], DOWN)


def latest() -> History:
    return outage(
        "latest", [row(20, "coalesced", through=60, into=70, decided=55.5), row(70, decided=5.5)], [came(70, 5.5)]
    )


GOOD: dict[str, Callable[[], History]] = {
    "plain": plain,
    "an outage, latest": latest,
    "an outage, skip": lambda: outage("skip", [row(20, "missed", through=70, decided=55.5)], []),
    "an outage, all": lambda: outage(
        "all",
        [row(one, decided=76 - one) for one in range(20, 80, 10)],
        [came(one, 76 - one) for one in range(20, 80, 10)],
    ),
    "a copy by a crash": lambda: replace(
        plain(), arrivals=[*plain().arrivals, came(20, 11, "b")], faults=[fault("crash", 20.6, 60, "a")]
    ),
    "a copy by a suspended one": lambda: replace(
        plain(), arrivals=[*plain().arrivals, came(20, 16, "b")], faults=[fault("suspend", 20.5, 36, "b")]
    ),
    "recovered after a crash": lambda: history(
        reign(10), [row(10, decided=11, claims=2)], [came(10, 11, "b")], fault("crash", 10.2, 60, "a")
    ),
    "disabled before its time": lambda: history(
        [reign(10, 20, 30), reign(begins=15, enabled=False)], [row(10)], [came(10)]
    ),
    "disabled in the moment it was due": lambda: history(
        [reign(10, 20), reign(begins=20.2, enabled=False)], [row(10), row(20, "disabled")], [came(10)]
    ),
    "another rule": lambda: history(
        [reign(10, 20, 30), reign(12, 17, 22, begins=15)],
        [row(one) for one in (10, 17, 22)],
        [came(one) for one in (10, 17, 22)],
    ),
    "paused": lambda: history(reign(10, 20, paused=True), [row(10, "paused"), row(20, "paused")], []),
    "a one-off that is named late": lambda: history(
        reign(5, begins=8, one_off=True, named=True), [row(5, decided=4)], [came(5, 4)]
    ),
    "a one-off by a rule": lambda: history(reign(10, 20, 30, one_off=True), [row(10)], [came(10)]),
    "one at a time": lambda: history(
        reign(10, 20, overlap="skip"), [row(10), row(20, "overlap", into=10)], [came(10)], executions=[body(10, 11, 30)]
    ),
    "retries run again": lambda: replace(
        plain(),
        executions=[body(one, one + 1, one + 2) for one in (10, 20, 30)] + [body(20, 25, 26, attempt=1)],
    ),
    "refused": lambda: history(reign(10), [row(10, "refused", claims=1)], [], fault("refusal", 10, 11)),
    "expired while away": lambda: history(
        reign(20, 30, expires=at(40)), [row(20, "expired", through=30, decided=55.5)], [], DOWN
    ),
    "beyond its grace": lambda: history(
        reign(20, grace=timedelta(seconds=30)), [row(20, "missed", decided=55.5)], [], DOWN
    ),
    "quarantined": lambda: history([reign(10, broken=True)], [row(10, "quarantined")], []),
}


def extra(found: History, *more: Arrival | Row) -> History:
    rows = [one for one in more if isinstance(one, Row)]
    arrivals = [one for one in more if isinstance(one, Arrival)]
    return replace(found, ledger=[*found.ledger, *rows], arrivals=[*found.arrivals, *arrivals])


BAD: dict[str, tuple[Kind | set[Kind], Callable[[], History]]] = {
    "no row and no message": (Kind.LOST, lambda: without(plain(), rows=1, arrivals=1)),
    "a range with a hole": (
        Kind.LOST,
        lambda: outage("skip", [row(20, "missed", through=50, decided=55.5)], []),
    ),
    "left claimed": (Kind.UNSENT, lambda: history(reign(10), [row(10, "claimed")], [])),
    "the broker never got it": (Kind.UNRECEIVED, lambda: without(plain(), arrivals=1)),
    "late, and nothing was wrong": (Kind.LATE, lambda: history(reign(10), [row(10, decided=5)], [came(10, 5)])),
    "later than the lease after a crash": (
        Kind.LATE,
        lambda: history(reign(10), [row(10, decided=35)], [came(10, 35, "b")], fault("crash", 10.2, 12, "a")),
    ),
    "a message without a row": ({Kind.UNRECORDED, Kind.LOST}, lambda: without(plain(), rows=1)),
    "a message of what was skipped": (
        Kind.UNRECORDED,
        lambda: extra(latest(), came(20, 56)),
    ),
    "a time nobody named": (Kind.UNSCHEDULED, lambda: extra(plain(), row(25), came(25))),
    "a time of a rule that was replaced": (
        Kind.UNSCHEDULED,
        lambda: history([reign(10, 20, 30), reign(begins=15, enabled=False)], [row(10), row(20)], [came(10), came(20)]),
    ),
    "a time before the task was there": (
        Kind.UNSCHEDULED,
        lambda: history(reign(10, 20, begins=15), [row(10, decided=6), row(20)], [came(10, 6), came(20)]),
    ),
    "a one-off twice": (
        Kind.UNSCHEDULED,
        lambda: history(reign(10, 20, one_off=True), [row(10), row(20)], [came(10), came(20)]),
    ),
    "before its time": (Kind.EARLY, lambda: history(reign(10), [row(10, decided=-1)], [came(10, -1)])),
    "a copy out of nowhere": (Kind.TWICE, lambda: extra(plain(), came(20, 3, "b"))),
    "a copy long after the crash": (
        Kind.TWICE,
        lambda: replace(extra(plain(), came(30, 12, "b")), faults=[fault("crash", 10.6, 12, "a")]),
    ),
    "a copy by the one that did not crash": (
        Kind.TWICE,
        lambda: replace(extra(plain(), came(20, 1, "a")), faults=[fault("crash", 20.6, 60, "b")]),
    ),
    "a copy by one that had nothing in flight": (
        Kind.TWICE,
        lambda: replace(
            extra(plain(), came(20, 16, "b")), faults=[fault("suspend", 20.5, 36, "b", copies=frozenset())]
        ),
    ),
    "more copies than a batch": (
        Kind.TWICE,
        lambda: replace(
            extra(plain(), came(10, 11, "b"), came(20, 11, "b"), came(30, 11, "b")),
            faults=[fault("crash", 10, 40, "a")],
        ),
    ),
    "two ids": (
        Kind.MIXED,
        lambda: replace(
            extra(plain(), came(20, 11, "b", message_id="another")), faults=[fault("crash", 20.6, 60, "a")]
        ),
    ),
    "one id for two": (
        Kind.MIXED,
        lambda: history(
            reign(10, 20),
            [row(10), row(20, message_id="id 10")],
            [came(10), came(20, message_id="id 10")],
        ),
    ),
    "sent and skipped": (
        {Kind.CONTRADICTION, Kind.STALE},
        lambda: extra(latest(), row(40, decided=36), came(40, 36)),
    ),
    "coalesced while schedulers were at work": (
        Kind.UNREASONED,
        lambda: replace(latest(), faults=[fault("stopped", 15, 75, "a")]),
    ),
    "coalesced under another policy": (
        Kind.UNREASONED,
        lambda: outage("all", list(latest().ledger[1:3]), [came(70, 5.5)]),
    ),
    "coalesced into nothing": (
        Kind.UNREASONED,
        lambda: outage("latest", [row(20, "coalesced", through=70, into=72, decided=55.5)], []),
    ),
    "missed under latest": (
        Kind.UNREASONED,
        lambda: outage("latest", [row(20, "missed", through=70, decided=55.5)], []),
    ),
    "disabled by nobody": (Kind.UNREASONED, lambda: history(reign(10), [row(10, "disabled")], [])),
    "paused by nobody": (Kind.UNREASONED, lambda: history(reign(10), [row(10, "paused")], [])),
    "quarantined and sound": (Kind.UNREASONED, lambda: history(reign(10), [row(10, "quarantined")], [])),
    "refused by nobody": (Kind.UNREASONED, lambda: history(reign(10), [row(10, "refused")], [])),
    "expired before its end": (
        Kind.UNREASONED,
        lambda: history(reign(20, expires=at(99)), [row(20, "expired", decided=55.5)], [], DOWN),
    ),
    "overlap with a run that had ended": (
        Kind.UNREASONED,
        lambda: history(
            reign(10, 20, overlap="skip"), [row(10), row(20, "overlap", into=10)], [came(10)],
            executions=[body(10, 11, 12)],
        ),
    ),
    "overlap where it is allowed": (
        Kind.UNREASONED,
        lambda: history(reign(10, 20), [row(10), row(20, "overlap", into=10)], [came(10)]),
    ),
    "a reason nobody knows": (Kind.UNREASONED, lambda: history(reign(10), [row(10, "whatever")], [])),
    "sent while paused": (Kind.STALE, lambda: history(reign(10, paused=True), [row(10)], [came(10)])),
    "missed, and sent under skip": (
        Kind.STALE,
        lambda: history(
            reign(20, 30, missed="skip"),
            [row(20, decided=56), row(30, "missed", decided=46)],
            [came(20, 56)],
            DOWN,
        ),
    ),
    "missed, and an older one sent under latest": (
        Kind.STALE,
        lambda: history(reign(20, 30), [row(20, decided=56), row(30, decided=46)], [came(20, 56), came(30, 46)], DOWN),
    ),
    "beyond its grace, and sent": (
        Kind.STALE,
        lambda: history(reign(20, grace=timedelta(seconds=9)), [row(20, decided=56)], [came(20, 56)], DOWN),
    ),
    "beside an open run": (
        Kind.OVERLAPPED,
        lambda: history(
            reign(10, 20, overlap="skip"), [row(10), row(20)], [came(10), came(20)],
            executions=[body(10, 11, 30), body(20, 31, 32)],
        ),
    ),
    "one attempt twice": (
        Kind.RAN_TWICE,
        lambda: replace(plain(), executions=[body(one, one + 1, one + 2) for one in (10, 20, 20, 30)]),
    ),
    "a message that no worker ran": (
        Kind.NOT_RUN,
        lambda: replace(plain(), executions=[body(one, one + 1, one + 2) for one in (10, 20)]),
    ),
    "claimed while nobody could send": (
        Kind.HASTY,
        lambda: history(
            reign(10), [row(10, decided=7)], [came(10, 7)], fault("broker", 9, 40, known=True, copies=frozenset())
        ),
    ),
    "a change that was there at the claim": (
        Kind.STALE,
        lambda: history(
            [reign(10), reign(begins=10.3, enabled=False)],
            [row(10, decided=30, claims=2)], [came(10, 30)], fault("crash", 10.2, 29, "a"),
        ),
    ),
    "a range that ends between two times": (
        Kind.UNSCHEDULED,
        lambda: outage("skip", [row(20, "missed", through=71, decided=55.5)], []),
    ),
    "an outcome that nobody kept": (
        Kind.FORGOTTEN,
        lambda: replace(
            plain(), executions=[body(one, one + 1, one + 2) for one in (10, 20, 30)], reported=True,
            ledger=[row(10, state="sent"), *(replace(row(one), state="succeeded") for one in (20, 30))],
        ),
    ),
    "a copy of another message than those in flight": (
        Kind.TWICE,
        lambda: replace(
            extra(plain(), came(20, 16, "b")),
            faults=[fault("suspend", 20.5, 36, "b", copies=frozenset({("t", at(30), 0)}))],
        ),
    ),
    "a body without a message": (
        Kind.UNRECORDED,
        lambda: replace(plain(), executions=[body(one, one + 1, one + 2) for one in (10, 20, 25, 30)]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_is_clean(name: str) -> None:
    assert check(GOOD[name]()) == []


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_is_found_out(name: str) -> None:
    """By that finding alone: one wrong thing is not told in several ways."""
    kinds, made = BAD[name]
    assert {one.kind for one in check(made())} == (kinds if isinstance(kinds, set) else {kinds})


def test_each_kind_of_finding_is_found() -> None:
    assert {kind for kind, _ in BAD.values() if isinstance(kind, Kind)} | {Kind.CONTRADICTION} == set(Kind)


def test_a_finding_is_a_line_for_people() -> None:
    assert str(Finding(Kind.LOST, "t", at(0.25), "why")) == "lost: t at 2026-03-10T10:00:00.250000+00:00: why"
