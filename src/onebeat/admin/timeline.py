"""The load to come as an inline SVG: a bar for each stretch of time, as high as its busiest minute."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import datetime

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from onebeat.admin.words import local
from onebeat.core.load_curve import MINUTE, Load

_WIDTH, _HEIGHT, _TOP, _BOTTOM = 720, 170, 22, 24
_LEFT = 44


def day(load: Load) -> SafeString:
    """The next 24 hours in bars of ten minutes."""
    return _chart(load, 24 * 60, 10, _ticks(load, 24 * 60, 3, "{0:%H:%M}".format))


def week(load: Load) -> SafeString:
    """The next seven days in bars of an hour."""
    return _chart(load, 7 * 24 * 60, 60, _ticks(load, 7 * 24 * 60, 24, _day))


def busiest(load: Load, minutes: int) -> str:
    """The busiest of the coming minutes, in words."""
    top = max(load.counts[:minutes], default=0.0)
    if not top:
        return gettext("nothing is to come")
    at = local(load.start + load.counts.index(top) * MINUTE)
    return gettext("Busiest minute: %(time)s with %(runs)s runs") % {"time": f"{at:%Y-%m-%d %H:%M}", "runs": runs(top)}


def runs(number: float) -> str:
    """A number of runs, some of which may be shares of a minute."""
    return "<1" if 0 < number < 1 else f"{math.ceil(number - 1e-9)}"


def _chart(load: Load, minutes: int, bucket: int, ticks: Iterator[tuple[int, str]]) -> SafeString:
    bars = load.busiest(bucket)[: minutes // bucket]
    top = max(bars, default=0.0)
    step = (_WIDTH - _LEFT) / len(bars)
    inner = _HEIGHT - _TOP - _BOTTOM
    peak = bars.index(top) if top else -1

    def bar(number: int, height: float) -> SafeString:
        tall = max(1.0, height / top * inner)
        begin = local(load.start + number * bucket * MINUTE)
        title = gettext("%(time)s: up to %(runs)s a minute") % {
            "time": f"{gettext(f'{begin:%a}')} {begin:%H:%M}",
            "runs": runs(height),
        }
        return format_html(
            '<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>',
            "ob-peak" if number == peak else "ob-bar",
            f"{_LEFT + number * step:.1f}",
            f"{_TOP + inner - tall:.1f}",
            f"{max(1.0, step - 1):.1f}",
            f"{tall:.1f}",
            title,
        )

    drawn = format_html_join("", "{}", ((bar(n, height),) for n, height in enumerate(bars) if height > 0))
    scale = format_html(
        '<line x1="{}" x2="{}" y1="{}" y2="{}"/><text x="{}" y="{}" text-anchor="end">{}</text>'
        '<line x1="{}" x2="{}" y1="{}" y2="{}"/><text x="{}" y="{}" text-anchor="end">0</text>',
        *(_LEFT, _WIDTH, _TOP, _TOP, _LEFT - 6, _TOP + 4, runs(top)),
        *(_LEFT, _WIDTH, _TOP + inner, _TOP + inner, _LEFT - 6, _TOP + inner + 4),
    )
    axis = format_html_join(
        "",
        '<line x1="{0}" x2="{0}" y1="{1}" y2="{2}"/><text x="{0}" y="{3}">{4}</text>',
        (
            (f"{_LEFT + at / bucket * step:.1f}", _TOP + inner, _TOP + inner + 5, _HEIGHT - 4, text)
            for at, text in ticks
            if at <= minutes * 0.95  # a text further on would be cut off
        ),
    )
    return format_html(
        '<svg class="ob-load" role="img" aria-label="{}" viewBox="0 0 {} {}">{}{}{}{}</svg>',
        busiest(load, minutes),
        *(_WIDTH, _HEIGHT, scale, axis, drawn, _marker(load, top, peak, bucket, step)),
    )


def _marker(load: Load, top: float, peak: int, bucket: int, step: float) -> SafeString:
    if peak < 0:
        return format_html('<text x="{}" y="{}">{}</text>', _LEFT + 8, _HEIGHT / 2, gettext("nothing is to come"))
    at = local(_busiest_minute(load, peak, bucket))
    left = _LEFT + peak * step
    text = gettext("%(runs)s at %(time)s") % {"runs": runs(top), "time": f"{at:%H:%M}"}
    if left > _WIDTH * 0.8:
        return format_html('<text x="{}" y="{}" text-anchor="end">{}</text>', f"{left:.1f}", _TOP - 6, text)
    return format_html('<text x="{}" y="{}">{}</text>', f"{left:.1f}", _TOP - 6, text)


def _busiest_minute(load: Load, peak: int, bucket: int) -> datetime:
    counts = load.counts[peak * bucket : (peak + 1) * bucket]
    return load.start + (peak * bucket + counts.index(max(counts))) * MINUTE


def _day(at: datetime) -> str:
    return f"{gettext(f'{at:%a}')} {at:%d}"


def _ticks(load: Load, minutes: int, hours: int, written: Callable[[datetime], str]) -> Iterator[tuple[int, str]]:
    """Every so many full hours of the clock: minutes from the start, and what to write."""
    for number in range(minutes):
        at = local(load.start + number * MINUTE)
        if at.minute == 0 and at.hour % hours == 0:
            yield number, written(at)
