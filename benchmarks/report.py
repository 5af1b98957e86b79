"""The tables that people read, and the ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.figures import Figure, find, number, ratio

_WHO = ("onebeat", "celery_beat", "redbeat")
_TITLES = ("onebeat", "django-celery-beat", "celery-redbeat")
_LOOP = "app.send_task in a loop"
_LIMIT = "limit: publishing"


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
    found.append(("two schedulers / one", ratio(*(find(figures, "schedulers", k, "onebeat") for k in (2, 1)))))
    idle = sorted(
        (one for one in figures if one.work == "idle tick" and one.who == "onebeat"), key=lambda one: one.size
    )
    if len(idle) > 1:
        found.append((f"idle tick: {idle[-1].size:,.0f} tasks / {idle[0].size:,.0f}", ratio(idle[-1], idle[0])))
    lines = ["| ratio | |", "|---|---|"]
    lines += [f"| {name} | {number(value)} |" for name, value in found if value is not None]
    return "\n".join(lines)


def growth(figures: Sequence[Figure]) -> str:
    """The exponent of cost against N: 0 is flat, 1 is in proportion; Markdown."""
    lines = ["| cost against N | exponent |", "|---|---|"]
    for work in ("idle tick", "one row changed", "memory", "from the imports to the first message", "due at once"):
        for who, title in zip(_WHO, _TITLES, strict=True):
            points = [(one.size, one.median) for one in figures if one.work == work and one.who == who]
            if len(points) > 1:
                costs = [(size, size / value if work == "due at once" else value) for size, value in points]
                name = "time to send N due at once" if work == "due at once" else work
                lines.append(f"| {name}, {title} | {slope(costs):.2f} |")
    return "\n".join(lines)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of a line through the points on log axes, by least squares."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mx, my = (sum(one) / len(logs) for one in zip(*logs, strict=True))
    return sum((x - mx) * (y - my) for x, y in logs) / sum((x - mx) ** 2 for x, _ in logs)
