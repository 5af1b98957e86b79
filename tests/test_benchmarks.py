"""The benchmark's own sums: figures made up here, so that a verdict it prints can be believed."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from dataclasses import replace

import pytest

from benchmarks import goals, measures, report
from benchmarks.figures import Figure
from benchmarks.run import MEASURES
from benchmarks.sizes import Sizes

LOOP = "app.send_task in a loop"


def figure(work: str, size: float, *values: float, who: str = "onebeat", unit: str = "messages/s") -> Figure:
    return Figure(work, size, who, unit, values)


#: A machine on which everything is reached, each figure just so.
REACHED = [
    figure("limit: publishing", 0, 2_000, who=LOOP),
    figure("limit: publishing", 0, 60_000, who="ready-made messages"),
    figure("limit: publishing, RabbitMQ", 0, 3_000, who=LOOP),
    figure("limit: publishing, without batches", 0, 1_000, who=LOOP),
    figure("limit: claiming", 0, 40_000, who="plain SQL", unit="rows/s"),
    figure("claiming alone", 20_000, 30_000, unit="rows/s"),
    figure("due at once", 1_000, 6_000),
    figure("due at once", 10_000, 5_000, 6_000, 9_000),
    figure("due at once", 100_000, 6_000),
    figure("due at once", 10_000, 75, who="celery_beat"),
    figure("due at once", 10_000, 750, who="redbeat"),
    figure("due at once, direct exchange", 10_000, 6_000),
    figure("due at once, topic exchange", 10_000, 1_500),
    figure("due at once, RabbitMQ", 1_000, 3_600),
    figure("due at once, observed by nobody", 10_000, 4_000),
    figure("due at once, Sentry", 10_000, 3_200),
    figure("limit: publishing, Sentry", 0, 1_000, who=LOOP),
    *(
        each
        for observer in ("OpenTelemetry", "a publish receiver", "an overridden apply_async")
        for each in (
            figure(f"due at once, {observer}", 10_000, 2_000),
            figure(f"limit: publishing, {observer}", 0, 2_000, who=LOOP),
        )
    ),
    figure("due at once, without batches", 10_000, 800),
    figure("due at once, MariaDB", 10_000, 3_000),
    figure("schedulers", 1, 5_000),
    figure("schedulers", 2, 7_000),
    figure("idle tick", 1_000, 0.2),
    figure("idle tick", 1_000_000, 0.22),
    figure("one row changed", 1_000, 10),
    figure("one row changed", 1_000_000, 10),
    figure("memory", 1_000, 70),
    figure("memory", 1_000_000, 70),
    figure("from the imports to the first message", 1_000_000, 0.1),
    *(
        figure(f"lateness{edits}: {part}", 1_000, value)
        for edits in ("", ", a row added every 200 ms")
        for part, value in (("p99", 50), ("not arrived", 0))
    ),
    *(
        figure(f"lateness: {part}", 100, value, who=who)
        for part in ("p50", "p99")
        for who, value in (("onebeat", 5), ("celery_beat", 5))
    ),
    figure("a solo worker", 5_000, 800, who="unrecorded"),
    figure("a solo worker", 5_000, 680, who="recorded"),
    figure("a solo worker", 5_000, 320, who="guarded, async"),
    figure("a solo worker", 5_000, 200, who="guarded, durable"),
    figure("onebeat.once_many", 1_000, 4_000),
    figure("onebeat.once_many", 10_000, 10_000),
    figure("onebeat.once, processes: errors", 32, 0, 0, 0),
    figure("onebeat.once, processes: p99", 32, 50, 60, 300),
    figure("onebeat.once, processes", 1, 600),
    figure("get_or_create and create, processes", 1, 100, who="celery_beat"),
]


def with_one(work: str, size: float, *values: float, who: str = "onebeat") -> list[Figure]:
    """`REACHED` with other values in one figure."""
    changed = [
        replace(one, values=values) if (one.work, one.size, one.who) == (work, size, who) else one for one in REACHED
    ]
    assert changed != REACHED
    return changed


def test_what_is_reached_just_so_is_reached() -> None:
    missed = [goal.line for goal in goals.goals(REACHED) if goal.sense != "printed" and goal.reached is not True]
    assert missed == []


def test_what_has_only_to_be_seen_is_shown_without_a_verdict() -> None:
    shown = [goal.row() for goal in goals.goals(REACHED) if goal.sense == "printed"]
    assert f"| due at once, topic exchange / {LOOP} | printed | 0.75 |  |" in shown
    assert "| due at once on MariaDB | printed | 3,000 messages/s |  |" in shown


@pytest.mark.parametrize(
    ("line", "figures"),
    [
        ("10,000 due at once / django-celery-beat", with_one("due at once", 10_000, 76, who="celery_beat")),
        ("10,000 due at once / celery-redbeat", with_one("due at once", 10_000, 760, who="redbeat")),
        ("due at once, direct exchange / ", with_one("due at once, direct exchange", 10_000, 5_900)),
        ("100,000 due at once / 1,000", with_one("due at once", 100_000, 4_700)),
        ("two schedulers / one", with_one("schedulers", 2, 6_900)),
        ("RabbitMQ / ", with_one("due at once, RabbitMQ", 1_000, 3_500)),
        ("a transport without batches / ", with_one("due at once, without batches", 10_000, 790)),
        ("idle tick, 1,000,000 tasks", with_one("idle tick", 1_000_000, 2.1)),
        ("idle tick, 1,000,000 tasks / at 1,000", with_one("idle tick", 1_000_000, 0.25)),
        ("memory of a scheduler", with_one("memory", 1_000, 81)),
        ("first message", with_one("from the imports to the first message", 1_000_000, 1.1)),
        ("lateness at 1,000 per second, p99", with_one("lateness: p99", 1_000, 51)),
        # One run that lost a message is enough.
        ("unsent at 1,000 per second", with_one("lateness: not arrived", 1_000, 0, 0, 0.1)),
        ("lateness at 100 per second, p99", with_one("lateness: p99", 100, 6)),
        ("onebeat.once_many", with_one("onebeat.once_many", 10_000, 9_900)),
        ("onebeat.once from 32 processes, errors", with_one("onebeat.once, processes: errors", 32, 0, 0, 1)),
        ("a solo worker, recorded", with_one("a solo worker", 5_000, 670, who="recorded")),
        ("a solo worker, guarded, async", with_one("a solo worker", 5_000, 310, who="guarded, async")),
        ("onebeat.once from 32 processes, p99", with_one("onebeat.once, processes: p99", 32, 61)),
        ("onebeat.once / django-celery-beat's two calls", with_one("onebeat.once, processes", 1, 590)),
        ("onebeat.once_many / the two calls", with_one("onebeat.once_many", 10_000, 9_900)),
        ("exponent of memory", with_one("memory", 1_000_000, 140)),
        ("exponent of the time to send N", with_one("due at once", 100_000, 3_000)),
    ],
)
def test_what_is_missed_is_said(line: str, figures: list[Figure]) -> None:
    said = [goal for goal in goals.goals(figures) if goal.reached is False]
    assert any(goal.line.startswith(line) for goal in said)
    assert "| no |" in next(goal.row() for goal in said if goal.line.startswith(line))


def test_what_was_not_measured_is_neither() -> None:
    found = goals.goals([])
    assert len(found) == len(goals.goals(REACHED))
    assert {goal.reached for goal in found} == {None}
    assert "not measured" in found[0].row()


def test_each_rate_is_a_share_of_the_limits_that_bound_it() -> None:
    lines = report.shares(REACHED).splitlines()
    assert "| claiming alone, 20,000 | limit: claiming: plain SQL | 75% |" in lines
    assert "| due at once, 10,000 | limit: publishing: ready-made messages | 10% |" in lines
    assert f"| due at once, RabbitMQ, 1,000 | limit: publishing, RabbitMQ: {LOOP} | 120% |" in lines
    assert not any(line.startswith("| due at once, RabbitMQ") and "ready-made" in line for line in lines)
    assert not any(line.startswith("| due at once, MariaDB") and "plain SQL" in line for line in lines)


def test_nothing_is_larger_than_asked_for() -> None:
    capped = Sizes().capped(500)
    for name in ("due", "rival_due", "idle", "once_many", "sweep", "pages", "recovery", "pruning", "routed", "shared"):
        value = getattr(capped, name)
        assert (max(value) if isinstance(value, tuple) else value) <= 500, name


def test_every_measure_is_one_that_make_bench_runs() -> None:
    """A module that nobody runs would rot, and its figures would be missed by nobody."""
    run = {inspect.getmodule(getattr(one, "func", one)) for one in MEASURES.values()}
    there = {
        importlib.import_module(f"{measures.__name__}.{one.name}") for one in pkgutil.iter_modules(measures.__path__)
    }
    assert there == run
