"""A recurrence in words. The common shapes are spelled out; any other is shown as it is written.

Texts go through `_`, a gettext function, and are whole phrases with named places, so that a translator can
move them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from onebeat.core.recurrence import Clocked, Cron, Interval, Recurrence, Solar
from onebeat.core.recurrence.fields import MONTHS, WEEKDAYS, read
from onebeat.core.recurrence.zones import offset

Translate = Callable[[str], str]

#: More clock times than this are a list that nobody reads.
_MAX_TIMES = 6
_SECOND = timedelta(seconds=1)
_UNITS = (
    (timedelta(days=1), "every day", "every %(n)s days"),
    (timedelta(hours=1), "every hour", "every %(n)s hours"),
    (timedelta(minutes=1), "every minute", "every %(n)s minutes"),
    (_SECOND, "every second", "every %(n)s seconds"),
    (timedelta(microseconds=1), "every microsecond", "every %(n)s microseconds"),
)


def describe(recurrence: Recurrence, _: Translate = str) -> str:
    """The recurrence in words, with its zone.

    Never raises: what has no words, or a broken translation of them, is shown raw.
    """
    try:
        match recurrence:
            case Cron():
                words = _cron(recurrence, _) or raw(recurrence)
                return words if words == raw(recurrence) else f"{words} ({recurrence.tz.key})"
            case Interval():
                return _interval(recurrence, _)
            case Clocked():
                return _("once at %(time)s") % {"time": f"{recurrence.instant:%Y-%m-%d %H:%M:%S} UTC"}
            case Solar():
                event = _(_event(recurrence.event))
                place = f"{recurrence.latitude}, {recurrence.longitude}"
                return _("at %(event)s at %(place)s") % {"event": event, "place": place}
    except Exception:  # a describer must not take a page down with it
        return raw(recurrence)
    return raw(recurrence)


def raw(recurrence: Recurrence) -> str:
    """The recurrence as it is written."""
    if isinstance(recurrence, Cron):
        c = recurrence
        return f"{c.minute} {c.hour} {c.day_of_month} {c.month_of_year} {c.day_of_week} ({c.tz.key})"
    return str(recurrence)


def note(cron: Cron, run: datetime, _: Translate = str) -> str:
    """What a clock change does to this run of a crontab, in words; empty for an ordinary day."""
    local = run.astimezone(cron.tz)
    missing = cron.stands_for(run)
    if missing is not None:
        text = _("%(missing)s does not exist that day: runs at %(time)s")
        return text % {"missing": f"{missing:%H:%M}", "time": f"{local:%H:%M}"}
    if offset(local.replace(fold=0)) <= offset(local.replace(fold=1)):
        return ""
    if cron.minute.startswith("*") or cron.hour.startswith("*"):
        text = _("%(time)s comes twice that day: runs both times")
    else:
        text = _("%(time)s comes twice that day: runs the first time only")
    return text % {"time": f"{local:%H:%M}"}


def _event(name: str) -> str:
    first, _, kind = name.partition("_")
    return f"{kind} {first}" if first in ("dawn", "dusk") else name.replace("_", " ")


def _interval(interval: Interval, _: Translate) -> str:
    for unit, one, many in _UNITS:
        n, rest = divmod(interval.period, unit)
        if not rest:
            return _(one) if n == 1 else _(many) % {"n": n}
        if n and unit == _SECOND:
            return _(many) % {"n": interval.period / unit}
    raise AssertionError("a period is a whole number of microseconds")


def _cron(cron: Cron, _: Translate) -> str | None:
    time = _time(cron.minute, cron.hour, _)
    parts = [time, _day(cron, _), _months(cron.month_of_year, _)]
    if None in parts:
        return None
    return ", ".join(part for part in parts if part)


def _time(minute: str, hour: str, _: Translate) -> str | None:
    if hour == "*":
        if minute == "*":
            return _("every minute")
        if minute == "0":
            return _("every hour")
        if minute.isdigit():
            return _("every hour at minute %(minute)s") % {"minute": minute}
        return _step(minute, 60, _("every %(n)s minutes"))
    if minute.isdigit() and hour.startswith("*"):
        words = _step(hour, 24, _("every %(n)s hours"))
        if words is None or minute == "0":
            return words
        return _("%(words)s at minute %(minute)s") % {"words": words, "minute": minute}
    minutes, hours = _values("minute", minute), _values("hour", hour)
    if len(minutes) * len(hours) > _MAX_TIMES:
        return None
    times = [f"{h:02}:{m:02}" for h in hours for m in minutes]
    return _("at %(times)s") % {"times": _list(times, _)}


def _step(text: str, size: int, words: str) -> str | None:
    """Words for a `*/n` that divides its field evenly. Any other step starts anew each hour or day."""
    n = text.removeprefix("*/")
    return words % {"n": n} if n.isdigit() and size % int(n) == 0 and 1 < int(n) < size else None


def _day(cron: Cron, _: Translate) -> str | None:
    weekdays = _weekdays(cron.day_of_week, _)
    days = _days(cron.day_of_month, _)
    if weekdays is None or days is None:
        return None
    if weekdays and days:
        both = _("%(days)s, but only when it is also %(weekdays)s")
        return both % {"days": days, "weekdays": weekdays}
    return _("on %(weekdays)s") % {"weekdays": weekdays} if weekdays else days


def _days(text: str, _: Translate) -> str | None:
    if text == "*":
        return ""
    if text == "L":
        return _("on the last day of the month")
    if read("day_of_month", text).last or "/" in text:
        return None
    return _("on day %(days)s of the month") % {"days": _list(_spans(text, str, _), _)}


def _weekdays(text: str, _: Translate) -> str | None:
    if text == "*":
        return ""
    if "#" in text or "/" in text:
        return None if "," in text or "/" in text else _nth(text, _)
    return _list(_spans(text, lambda n: _(WEEKDAYS[int(n)].capitalize()), _), _)


def _nth(text: str, _: Translate) -> str:
    weekday, n = text.split("#")
    words = {
        "1": _("the first %(weekday)s of the month"),
        "2": _("the second %(weekday)s of the month"),
        "3": _("the third %(weekday)s of the month"),
        "4": _("the fourth %(weekday)s of the month"),
        "5": _("the fifth %(weekday)s of the month"),
        "L": _("the last %(weekday)s of the month"),
    }
    return words[n] % {"weekday": _(WEEKDAYS[int(weekday)].capitalize())}


def _months(text: str, _: Translate) -> str | None:
    if text == "*":
        return ""
    if "/" in text:
        text = ",".join(map(str, _values("month_of_year", text)))
    names = _spans(text, lambda n: _(MONTHS[int(n) - 1].capitalize()), _)
    return _("in %(months)s") % {"months": _list(names, _)}


def _spans(text: str, name: Callable[[str], str], _: Translate) -> list[str]:
    spans = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        words = _("%(first)s to %(last)s") % {"first": name(first), "last": name(last)} if dash else name(first)
        spans.append(words)
    return spans


def _list(words: Iterable[str], _: Translate) -> str:
    *head, last = words
    return _("%(head)s and %(last)s") % {"head": ", ".join(head), "last": last} if head else last


def _values(field: str, text: str) -> list[int]:
    mask = read(field, text).mask
    return [number for number in range(mask.bit_length()) if mask >> number & 1]
