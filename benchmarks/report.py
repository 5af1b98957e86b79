"""The tables that people read, and the ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.figures import Figure, find, number, ratio

_WHO = ("onebeat", "celery_beat", "redbeat")
_TITLES = ("onebeat", "django-celery-beat", "celery-redbeat")
_LOOP = "app.send_task in a loop"
_LIMIT = "limit: publishing"
#: Where other limits hold.
_PLACES = (", RabbitMQ", ", without batches")
_ELSEWHERE = (", MariaDB", ", SQLite")
#: What should cost the same at any number of tasks, or grow with it.
_GROWS = (
    *("idle tick", "one row changed", "memory", "from the imports to the first message", "due at once"),
    *("sweep: 1,000 tasks", "sweep: a whole pass", "admin: list", "admin: add"),
)


def table(figures: Sequence[Figure]) -> str:
    """Every measure with the contestants side by side, then the limits; Markdown."""
    lines = [f"| work | size | unit | {' | '.join(_TITLES)} |", "|---|---|---|---|---|---|"]
    rows = dict.fromkeys((one.work, one.size, one.unit) for one in figures if one.who in _WHO)
    for work, size, unit in rows:
        cells = [found.shown() if (found := find(figures, work, size, who)) else "" for who in _WHO]
        lines.append(f"| {work} | {size:,.0f} | {unit} | {' | '.join(cells)} |")
    limits = [one for one in figures if one.who not in _WHO]
    if limits:
        lines += ["", "| limit of this machine | by | unit | |", "|---|---|---|---|"]
        lines += [f"| {one.work} | {one.who} | {one.unit} | {one.shown()} |" for one in limits]
    return "\n".join(lines)


def ratios(figures: Sequence[Figure]) -> str:
    """How many times one is the other; Markdown."""
    loop = find(figures, _LIMIT, 0, _LOOP)
    rabbit = find(figures, f"{_LIMIT}, RabbitMQ", 0, _LOOP)
    found: list[tuple[str, float | None]] = []
    sizes = sorted({one.size for one in figures if one.work == "due at once"})
    for size in sizes:
        ours = find(figures, "due at once", size, "onebeat")
        found += [(f"{size:,.0f} due at once: onebeat / {_LOOP}", ratio(ours, loop))]
        for who, title in zip(_WHO[1:], _TITLES[1:], strict=True):
            found.append(
                (f"{size:,.0f} due at once: onebeat / {title}", ratio(ours, find(figures, "due at once", size, who)))
            )
    for one in figures:
        if one.work == "due at once, RabbitMQ":
            found.append((f"{one.size:,.0f} due at once, RabbitMQ: onebeat / {_LOOP}", ratio(one, rabbit)))
    single = find(figures, "schedulers", 1, "onebeat")
    for one in figures:
        if one.work == "schedulers" and one.size > 1:
            found.append((f"{one.size:.0f} schedulers / one", ratio(one, single)))
    idle = sorted(
        (one for one in figures if one.work == "idle tick" and one.who == "onebeat"), key=lambda one: one.size
    )
    if len(idle) > 1:
        found.append((f"idle tick: {idle[-1].size:,.0f} tasks / {idle[0].size:,.0f}", ratio(idle[-1], idle[0])))
    lines = ["| ratio | |", "|---|---|"]
    lines += [f"| {name} | {number(value)} |" for name, value in found if value is not None]
    return "\n".join(lines)


def shares(figures: Sequence[Figure]) -> str:
    """Each rate of onebeat as a share of what the machine can do; Markdown."""
    lines = ["| rate | of the limit | share |", "|---|---|---|"]
    for one in figures:
        for limit in _limits(figures, one) if one.who == "onebeat" else ():
            share = ratio(one, limit)
            if share is not None:
                lines.append(f"| {one.work}, {one.size:,.0f} | {limit.work}: {limit.who} | {share:.0%} |")
    return "\n".join(lines)


def _limits(figures: Sequence[Figure], one: Figure) -> list[Figure]:
    """What a rate is bounded by: publishing to the same broker, and claiming."""
    if one.unit not in ("messages/s", "rows/s") or not one.work.startswith(("due at", "claiming", "publish", "sched")):
        return []
    suffix = next((end for end in _PLACES if one.work.endswith(end)), "")
    publishing = [each for each in figures if each.work == _LIMIT + suffix]
    claiming = [each for each in figures if each.work == "limit: claiming"]
    if one.work.startswith("claiming"):
        return claiming
    # Claiming by plain SQL was measured on PostgreSQL.
    return publishing if one.work.startswith("publishing") or one.work.endswith(_ELSEWHERE) else publishing + claiming


def growth(figures: Sequence[Figure]) -> str:
    """The exponent of cost against N: 0 is flat, 1 is in proportion; Markdown."""
    lines = ["| cost against N | exponent |", "|---|---|"]
    for work in _GROWS:
        for who, title in zip(_WHO, _TITLES, strict=True):
            found = exponent(figures, work, who)
            if found is not None:
                name = "time to send N due at once" if work == "due at once" else work
                lines.append(f"| {name}, {title} | {found:.2f} |")
    return "\n".join(lines)


def exponent(figures: Sequence[Figure], work: str, who: str) -> float | None:
    """Of the cost of `work` against its size; None if it was measured at one size only. A rate stands for its time."""
    points = [(one.size, one.median) for one in figures if (one.work, one.who) == (work, who) and one.median]
    if len(points) < 2:
        return None
    return slope([(size, size / value if work == "due at once" else value) for size, value in points])


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of a line through the points on log axes, by least squares."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mx, my = (sum(one) / len(logs) for one in zip(*logs, strict=True))
    return sum((x - mx) * (y - my) for x, y in logs) / sum((x - mx) ** 2 for x, _ in logs)
