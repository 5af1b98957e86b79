"""What the engine must reach, beside what was seen: ratios of one run, and figures that hold on any machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.figures import Figure, find, number, ratio
from benchmarks.report import exponent

_LOOP = "app.send_task in a loop"
_LIMIT = "limit: publishing"
#: What part of the rate must be left with each.
_OBSERVERS = {"Sentry": 0.8, "OpenTelemetry": 0.5, "a publish receiver": 0.5, "an overridden apply_async": 0.5}
_EDITS = ", a row added every 200 ms"
#: How far from flat, or from proportion, an exponent may be.
_ABOUT = 0.05


@dataclass(frozen=True)
class Goal:
    """One line: what must be reached, and the figure that was seen; None where it was not measured."""

    line: str
    sense: Literal["at least", "at most", "about", "printed"]
    goal: float
    seen: float | None
    unit: str = ""

    @property
    def reached(self) -> bool | None:
        """None if it was not measured, or has only to be seen."""
        if self.seen is None or self.sense == "printed":
            return None
        if self.sense == "about":
            return abs(self.seen - self.goal) <= _ABOUT
        return self.seen >= self.goal if self.sense == "at least" else self.seen <= self.goal

    def row(self) -> str:
        """As a row of Markdown."""
        within = f" within {_ABOUT}" if self.sense == "about" else ""
        wanted = (
            "printed" if self.sense == "printed" else f"{self.sense} {_plain(self.goal)} {self.unit}".rstrip() + within
        )
        seen = "not measured" if self.seen is None else f"{_plain(self.seen)} {self.unit}".rstrip()
        return f"| {self.line} | {wanted} | {seen} | {_VERDICTS[self.reached]} |"


_VERDICTS = {True: "yes", False: "no", None: ""}


def _plain(value: float) -> str:
    return number(0.0 if abs(value) < 0.0005 else value)


def table(figures: Sequence[Figure]) -> str:
    """All of them; Markdown."""
    return "\n".join(
        ["| must reach | goal | seen | reached |", "|---|---|---|---|", *(one.row() for one in goals(figures))]
    )


def goals(figures: Sequence[Figure]) -> list[Goal]:
    """Every line, in the order in which they were set."""
    parts: tuple[Callable[[Sequence[Figure]], Iterator[Goal]], ...] = (
        _rates,
        _flat,
        _lateness,
        _creation,
        _workers,
        _growth,
    )
    return [goal for part in parts for goal in part(figures)]


def _rates(figures: Sequence[Figure]) -> Iterator[Goal]:
    loop = find(figures, _LIMIT, 0, _LOOP)

    def due(size: float, who: str = "onebeat") -> Figure | None:
        return find(figures, "due at once", size, who)

    ten = due(10_000)
    for title, who, goal in (("django-celery-beat", "celery_beat", 80), ("celery-redbeat", "redbeat", 8)):
        yield Goal(f"10,000 due at once / {title}", "at least", goal, ratio(ten, due(10_000, who)))
    yield Goal(f"10,000 due at once / {_LOOP}", "at least", 3, ratio(ten, loop))
    direct, topic = (_largest(figures, f"due at once, {kind} exchange") for kind in ("direct", "topic"))
    yield Goal(f"due at once, direct exchange / {_LOOP}", "at least", 3, ratio(direct, loop))
    yield Goal(f"due at once, topic exchange / {_LOOP}", "printed", 0, ratio(topic, loop))
    yield Goal("100,000 due at once / 1,000", "at least", 0.8, ratio(due(100_000), due(1_000)))
    schedulers = [find(figures, "schedulers", count, "onebeat") for count in (2, 1)]
    yield Goal("two schedulers / one", "at least", 1.4, ratio(*schedulers))
    rabbit = find(figures, f"{_LIMIT}, RabbitMQ", 0, _LOOP)
    yield Goal(f"RabbitMQ / {_LOOP}", "at least", 1.2, ratio(_largest(figures, "due at once, RabbitMQ"), rabbit))
    singly = find(figures, f"{_LIMIT}, without batches", 0, _LOOP)
    one = _largest(figures, "due at once, without batches")
    yield Goal(f"a transport without batches / {_LOOP}", "at least", 0.8, ratio(one, singly))
    alone = _largest(figures, "due at once, observed by nobody")
    for observer, goal in _OBSERVERS.items():
        seen = _largest(figures, f"due at once, {observer}")
        yield Goal(f"due at once, {observer} / without", "at least", goal, ratio(seen, alone))
        same = find(figures, f"{_LIMIT}, {observer}", 0, _LOOP)
        yield Goal(f"due at once, {observer} / {_LOOP}", "at least", 1, ratio(seen, same))
    for database in ("MariaDB", "SQLite"):
        there = _largest(figures, f"due at once, {database}")
        yield Goal(f"due at once on {database}", "printed", 0, _median(there), "messages/s")


def _flat(figures: Sequence[Figure]) -> Iterator[Goal]:
    idle = _largest(figures, "idle tick")
    yield Goal(f"idle tick{_at(idle)}", "at most", 2, _median(idle), "ms")
    small = find(figures, "idle tick", 1_000, "onebeat")
    yield Goal(f"idle tick{_at(idle)} / at 1,000", "at most", 1.2, ratio(idle, small) if idle != small else None)
    held = [one.median for one in figures if (one.work, one.who) == ("memory", "onebeat")]
    yield Goal("memory of a scheduler at any number of tasks", "at most", 80, max(held, default=None), "MiB")
    first = _largest(figures, "from the imports to the first message")
    yield Goal(f"first message after the imports{_at(first)}", "at most", 1, _median(first), "s")


def _lateness(figures: Sequence[Figure]) -> Iterator[Goal]:
    for edits in ("", _EDITS):
        late, lost = (find(figures, f"lateness{edits}: {part}", 1_000, "onebeat") for part in ("p99", "not arrived"))
        yield Goal(f"lateness at 1,000 per second{edits}, p99", "at most", 50, _median(late), "ms")
        worst = max(lost.values) if lost else None
        yield Goal(f"unsent at 1,000 per second{edits}", "at most", 0, worst, "%")
    for part in ("p50", "p99"):
        ours, theirs = (find(figures, f"lateness: {part}", 100, who) for who in ("onebeat", "celery_beat"))
        yield Goal(f"lateness at 100 per second, {part} / django-celery-beat", "at most", 1, ratio(ours, theirs))


def _creation(figures: Sequence[Figure]) -> Iterator[Goal]:
    many = _largest(figures, "onebeat.once_many")
    yield Goal(f"onebeat.once_many{_at(many, 'rows')}", "at least", 10_000, _median(many), "rows/s")
    work = "onebeat.once, processes"
    two = find(figures, "get_or_create and create, processes", 1, "celery_beat")
    yield Goal(
        "onebeat.once / django-celery-beat's two calls", "at least", 6, ratio(find(figures, work, 1, "onebeat"), two)
    )
    yield Goal("onebeat.once_many / the two calls", "at least", 100, ratio(many, two))
    errors = find(figures, f"{work}: errors", 32, "onebeat")
    yield Goal("onebeat.once from 32 processes, errors", "at most", 0, max(errors.values) if errors else None)
    p99 = _median(find(figures, f"{work}: p99", 32, "onebeat"))
    yield Goal("onebeat.once from 32 processes, p99", "at most", 60, p99, "ms")


def _workers(figures: Sequence[Figure]) -> Iterator[Goal]:
    found = {one.who: one for one in figures if one.work == "a solo worker"}
    for who, goal in (("recorded", 0.85), ("guarded, async", 0.4), ("guarded, durable", None)):
        seen = ratio(found.get(who), found.get("unrecorded"))
        yield Goal(f"a solo worker, {who} / unrecorded", "at least" if goal else "printed", goal or 0, seen)


def _growth(figures: Sequence[Figure]) -> Iterator[Goal]:
    for work in ("idle tick", "one row changed", "memory"):
        yield Goal(f"exponent of {work}", "about", 0, exponent(figures, work, "onebeat"))
    yield Goal("exponent of the time to send N", "about", 1, exponent(figures, "due at once", "onebeat"))


def _largest(figures: Sequence[Figure], work: str) -> Figure | None:
    """Of the sizes that were measured."""
    own = [one for one in figures if (one.work, one.who) == (work, "onebeat")]
    return max(own, key=lambda one: one.size, default=None)


def _at(one: Figure | None, what: str = "tasks") -> str:
    return f", {one.size:,.0f} {what}" if one else ""


def _median(one: Figure | None) -> float | None:
    return one.median if one else None
