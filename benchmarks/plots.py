"""Plots as SVG, written by hand: cost against N on log axes, one line for each contestant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import Figure, number

_COLOURS = {"onebeat": "#0b6e4f", "celery_beat": "#c1440e", "redbeat": "#7a5195"}
_NAMES = {"onebeat": "onebeat", "celery_beat": "django-celery-beat", "redbeat": "celery-redbeat"}
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 640, 380, 70, 40, 160, 50

Lines = dict[str, list[tuple[float, float]]]


def draw(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """One file for each measure that has sizes. Returns what was written."""
    wanted = {
        "idle-tick.svg": ("idle tick", "ms per tick with nothing due"),
        "memory.svg": ("memory", "MiB"),
        "due-at-once.svg": ("due at once", "messages per second"),
        "first-message.svg": ("from the imports to the first message", "seconds"),
        "lateness-p99.svg": ("lateness, a row added every 200 ms: p99", "ms, 99th percentile, with edits"),
    }
    written = []
    for name, (work, title) in wanted.items():
        lines: Lines = {}
        for one in figures:
            if one.work == work and one.who in _COLOURS and one.median > 0:
                lines.setdefault(one.who, []).append((one.size, one.median))
        if lines:
            (folder / name).write_text(_svg(f"{work}: {title}", lines))
            written.append(folder / name)
    return written


def _svg(title: str, lines: Lines) -> str:
    xs, ys = zip(*(point for points in lines.values() for point in points), strict=True)
    (x0, x1), (y0, y1) = _decades(xs), _decades(ys)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - x0) / (x1 - x0) * (_WIDTH - _LEFT - _RIGHT)
        up = (math.log10(y) - y0) / (y1 - y0) * (_HEIGHT - _TOP - _BOTTOM)
        return round(_LEFT + across, 1), round(_HEIGHT - _BOTTOM - up, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="14">{title}</text>',
    ]
    for power in range(x0, x1 + 1):
        x, y = place(10**power, 10**y0)
        parts.append(f'<path d="M{x} {y}V{_TOP}" stroke="#ddd"/>')
        parts.append(f'<text x="{x}" y="{y + 18}" text-anchor="middle">{number(10**power)}</text>')
    for power in range(y0, y1 + 1):
        x, y = place(10**x0, 10**power)
        parts.append(f'<path d="M{x} {y}H{_WIDTH - _RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{x - 6}" y="{y + 4}" text-anchor="end">{number(10**power)}</text>')
    for who, points in lines.items():
        colour = _COLOURS[who]
        placed = [place(*point) for point in sorted(points)]
        line = " ".join(f"{x},{y}" for x, y in placed)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>' for x, y in placed]
        parts.append(f'<text x="{placed[-1][0] + 8}" y="{placed[-1][1] + 4}" fill="{colour}">{_NAMES[who]}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)
