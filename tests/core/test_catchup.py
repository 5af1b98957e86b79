"""Verdicts on nominal times, as pure sums. A line is: due times up to now, and what becomes of each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebeat.core.catchup import SEND_LIMIT, Decision, Policy, Running, Skip, decide, superseded, wait
from onebeat.core.recurrence import Clocked, Cron, Interval

ZERO = datetime(2026, 3, 10, 10, tzinfo=UTC)
TENS = Interval(timedelta(seconds=10), ZERO)
FOREVER = datetime.max.replace(tzinfo=UTC)


def at(seconds: float) -> datetime:
    return ZERO + timedelta(seconds=seconds)


def span(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def short(decision: Decision) -> tuple[list[float], list[tuple[float, float, str]], float | None]:
    """(sent, skipped ranges, next), all in seconds."""

    def number(instant: datetime) -> float:
        return (instant - ZERO).total_seconds()

    return (
        [number(one) for one in decision.send],
        [(number(one.first), number(one.last), one.reason) for one in decision.skips],
        None if decision.due_at is None else number(decision.due_at),
    )


CASES = {
    # policy, due, now, missed before, expires, one-off: sent, skipped, next
    "not yet": (Policy(), 10, 9, 0, None, False, [], [], 10),
    "on time": (Policy(), 10, 10, 0, None, False, [10], [], 20),
    "late": (Policy(), 10, 35, 0, None, False, [10, 20, 30], [], 40),
    "late, skip": (Policy("skip"), 10, 35, 0, None, False, [10, 20, 30], [], 40),
    "missed, latest": (Policy(), 10, 35, 35, None, False, [30], [(10, 20, "coalesced")], 40),
    "missed and late": (Policy(), 10, 55, 35, None, False, [30, 40, 50], [(10, 20, "coalesced")], 60),
    "missed just before now": (Policy(), 10, 30, 30, None, False, [20, 30], [(10, 10, "coalesced")], 40),
    "one missed": (Policy(), 10, 15, 15, None, False, [10], [], 20),
    "missed, skip": (Policy("skip"), 10, 35, 35, None, False, [], [(10, 30, "missed")], 40),
    "missed, all": (Policy("all"), 10, 35, 35, None, False, [10, 20, 30], [], 40),
    "grace": (Policy("all", span(15)), 10, 35, 0, None, False, [20, 30], [(10, 10, "missed")], 40),
    "grace to the second": (Policy("all", span(15)), 10, 25, 0, None, False, [10, 20], [], 30),
    "grace, latest": (Policy("latest", span(3)), 10, 35, 35, None, False, [], [(10, 30, "missed")], 40),
    "paused": (Policy(paused_until=FOREVER), 10, 35, 0, None, False, [], [(10, 30, "paused")], 40),
    "pause to come": (Policy(paused_until=FOREVER), 10, 5, 0, None, False, [], [], 10),
    "pause over": (Policy(paused_until=at(20)), 10, 35, 0, None, False, [20, 30], [(10, 10, "paused")], 40),
    "pause over, missed": (
        Policy(paused_until=at(20)), 10, 45, 45, None, False, [40], [(10, 10, "paused"), (20, 30, "coalesced")], 50,
    ),
    "pause long over": (Policy(paused_until=at(5)), 10, 15, 0, None, False, [10], [], 20),
    "one-off": (Policy(), 10, 15, 0, None, True, [10], [], None),
    "one-off missed": (Policy(), 10, 35, 35, None, True, [30], [(10, 20, "coalesced")], None),
    "one-off, all": (Policy("all"), 10, 35, 35, None, True, [10], [], None),
    "one-off, skip": (Policy("skip"), 10, 35, 35, None, True, [], [(10, 30, "missed")], 40),
    "end ahead": (Policy(), 10, 15, 0, 25, False, [10], [], 20),
    "last": (Policy(), 20, 20, 0, 25, False, [20], [], None),
    "at the end itself": (Policy(), 20, 20.1, 0, 20, False, [20], [], None),
    "end between": (Policy(), 10, 35, 0, 25, False, [10, 20], [], None),
    "missed before the end": (Policy(), 10, 35, 35, 25, False, [], [(10, 20, "expired")], None),
    "all before the end": (Policy("all"), 10, 35, 35, 25, False, [], [(10, 20, "expired")], None),
    "due after the end": (Policy(), 30, 35, 0, 25, False, [], [], None),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_becomes_of_each_time(case: str) -> None:
    policy, due, now, missed, expires, one_off, *expected = CASES[case]
    decision = decide(
        TENS,
        at(due),
        at(now),
        policy,
        missed_before=at(missed),
        expires=None if expires is None else at(expires),
        one_off=one_off,
    )
    assert short(decision) == tuple(expected)


def test_a_skip_names_the_time_that_stands_for_it() -> None:
    decision = decide(TENS, at(10), at(35), missed_before=at(35))
    assert decision.skips == (Skip(at(10), at(20), "coalesced", into=at(30)),)


ONE = Policy(overlap="skip")
OVERLAPS = {
    # policy, due, now, missed before, running until (its nominal time is 0): sent, skipped, next
    "allowed": (Policy(), 10, 25, 0, 99, [10, 20], [], 30),
    "open": (ONE, 10, 10, 0, 99, [], [(10, 10, "overlap")], 20),
    "open and late": (ONE, 10, 35, 0, 99, [], [(10, 30, "overlap")], 40),
    "past its limit": (ONE, 10, 15, 0, 15, [10], [], 20),
    "none open": (ONE, 10, 15, 0, None, [10], [], 20),
    "one after the other, late": (ONE, 10, 35, 0, None, [10], [(20, 30, "overlap")], 40),
    "missed, latest": (ONE, 10, 35, 35, 99, [], [(10, 20, "coalesced"), (30, 30, "overlap")], 40),
    "missed, all": (Policy("all", overlap="skip"), 10, 35, 35, None, [10], [(20, 30, "overlap")], 40),
    "paused comes first": (
        Policy(overlap="skip", paused_until=at(20)), 10, 25, 0, 99, [], [(10, 10, "paused"), (20, 20, "overlap")], 30,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OVERLAPS)
def test_one_run_at_a_time(case: str) -> None:
    policy, due, now, missed, until, *expected = OVERLAPS[case]
    running = None if until is None else Running(at(0), at(until))
    decision = decide(TENS, at(due), at(now), policy, missed_before=at(missed), running=running)
    assert short(decision) == tuple(expected)
    for skip in decision.skips:
        if skip.reason == "overlap":
            assert skip.into == (at(0) if until else at(10)), "it names the run that was open"


def test_a_million_times_under_one_open_run_are_one_range() -> None:
    decision = decide(TENS, at(10), at(10_000_005), ONE, missed_before=at(0), running=Running(at(0), FOREVER))
    assert short(decision) == ([], [(10, 10_000_000, "overlap")], 10_000_010)


def test_a_time_whose_jitter_has_not_passed_is_not_decided_under_an_open_run() -> None:
    policy = Policy(overlap="skip", jitter=span(10))
    held = wait(TENS, at(40), policy, "7")
    assert held > span(0.1)
    for now, last in ((at(40) + held - span(0.05), 30), (at(40) + held, 40)):
        decision = decide(TENS, at(10), now, policy, missed_before=at(0), key="7", running=Running(at(0), FOREVER))
        assert short(decision) == ([], [(10, last, "overlap")], last + 10)


def test_an_instant_is_decided_once() -> None:
    decision = decide(Clocked(at(5)), at(5), at(3600), missed_before=at(3600), one_off=True)
    assert short(decision) == ([5], [], None)
    skipped = decide(Clocked(at(5)), at(5), at(3600), Policy("skip"), missed_before=at(3600), one_off=True)
    assert short(skipped) == ([], [(5, 5, "missed")], None)


def test_a_long_backlog_goes_out_in_portions() -> None:
    decision = decide(TENS, at(10), at(10 * SEND_LIMIT + 95), Policy("all"), missed_before=at(0))
    assert len(decision.send) == SEND_LIMIT
    assert decision.due_at == at(10 * SEND_LIMIT + 10)


def test_jitter_holds_a_time_back_and_never_past_the_next() -> None:
    policy = Policy(jitter=span(3600))
    for n in range(1, 50):
        held = wait(TENS, at(10 * n), policy, "7")
        assert timedelta(0) <= held < span(10)
        assert held == wait(TENS, at(10 * n), policy, "7")
        moment = at(10 * n) + held
        before = decide(TENS, at(10 * n), moment - span(0.001), policy, missed_before=at(0), key="7")
        after = decide(TENS, at(10 * n), moment, policy, missed_before=at(0), key="7")
        assert before.send == ()
        assert after.send == (at(10 * n),)
    assert len({wait(TENS, at(10 * n), policy, "7") for n in range(1, 50)}) > 40
    assert wait(TENS, at(10), policy, "7") != wait(TENS, at(10), policy, "8")


SUPERSEDED = [
    (Policy(), 10, 15, 0, None, False, None),
    (Policy(), 10, 15, 15, None, False, None),
    (Policy(), 10, 20, 20, None, False, "coalesced"),
    (Policy(), 10, 20, 20, None, True, None),
    (Policy(), 10, 35, 10, None, False, None),
    (Policy("all"), 10, 35, 35, None, False, None),
    (Policy("skip"), 10, 15, 15, None, False, "missed"),
    (Policy("skip"), 10, 15, 5, None, False, None),
    (Policy("all", span(5)), 10, 16, 0, None, False, "missed"),
    (Policy("all", span(5)), 10, 15, 0, None, False, None),
    (Policy(paused_until=FOREVER), 10, 15, 0, None, False, "paused"),
    (Policy(paused_until=at(12)), 10, 15, 0, None, False, None),
    (Policy("all"), 10, 15, 0, 12, False, "expired"),
    (Policy("all"), 10, 15, 0, 15, False, None),
]


@pytest.mark.parametrize(("policy", "due", "now", "missed", "expires", "one_off", "verdict"), SUPERSEDED)
def test_what_was_not_sent_in_time_is_decided_again(  # type: ignore[no-untyped-def]
    policy, due, now, missed, expires, one_off, verdict
) -> None:
    ends = None if expires is None else at(expires)
    found = superseded(TENS, at(due), at(now), policy, missed_before=at(missed), expires=ends, one_off=one_off)
    assert found == verdict


RULES = st.sampled_from([TENS, Interval(timedelta(seconds=7), ZERO), Cron("*"), Cron("*/7"), Cron("1,2,30")])
POLICIES = st.builds(
    Policy,
    st.sampled_from(["latest", "skip", "all"]),
    st.none() | st.integers(0, 900).map(span),
    st.sampled_from([timedelta(0), span(5)]),
    st.none() | st.integers(-100, 4000).map(at),
    st.sampled_from(["allow", "skip"]),
)


@settings(max_examples=150, deadline=None)
@given(
    RULES,
    POLICIES,
    st.integers(0, 2000),
    st.integers(0, 2000),
    st.integers(-100, 4000),
    st.none() | st.integers(0, 4000),
    st.none() | st.integers(0, 4000),
)
def test_every_time_gets_exactly_one_verdict(rule, policy, late, ago, missed, expires, open_until) -> None:  # type: ignore[no-untyped-def]
    """Sent, in one skipped range, or still to come: never two of them, and none left out."""
    due = rule.after(at(late))
    now = due + span(ago)
    ends = None if expires is None else at(expires)
    running = None if open_until is None else Running(at(-1), at(open_until))
    decision = decide(
        rule, due, now, policy, missed_before=at(missed), expires=ends, key="1", running=running, limit=5000
    )
    verdicts = [(one, one) for one in decision.send] + [(one.first, one.last) for one in decision.skips]
    nominal = due
    while nominal is not None and nominal <= now and (ends is None or nominal <= ends):
        named = [1 for first, last in verdicts if first <= nominal <= last]
        waits = decision.due_at is not None and nominal >= decision.due_at
        assert len(named) + waits == 1, nominal
        nominal = rule.after(nominal)
    assert list(decision.send) == sorted(set(decision.send))
    if decision.due_at is not None:
        assert ends is None or decision.due_at <= ends
        assert decision.due_at == rule.after(decision.due_at - timedelta(microseconds=1))
