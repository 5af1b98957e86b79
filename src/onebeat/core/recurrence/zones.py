"""IANA time zones by name, and the version of the rules behind them."""

from __future__ import annotations

import difflib
import zoneinfo
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from zoneinfo import ZoneInfo

from onebeat.errors import InvalidSchedule

_NOTHING = timedelta(0)
_SECOND = timedelta(seconds=1)


def zone(name: str | tzinfo) -> ZoneInfo:
    """The IANA zone of that name; letter case does not matter and the zone carries the name as IANA writes it.

    Takes a ZoneInfo, `datetime.UTC` and the zones of pytz as well. Raises InvalidSchedule (field "timezone") for
    anything else, and for a zone without an IANA name: its rules could not be stored.
    """
    if isinstance(name, tzinfo):
        text = "UTC" if name is UTC else getattr(name, "key", None) or getattr(name, "zone", None)
    else:
        text = name
    if not isinstance(text, str):
        raise InvalidSchedule("timezone", name, "an IANA name is needed, such as Europe/Paris")
    return _by_name(text)


@lru_cache(maxsize=2048)
def _by_name(text: str) -> ZoneInfo:
    names = _names()
    folded = text.strip().casefold()
    if folded in names:
        return ZoneInfo(names[folded])
    near = difflib.get_close_matches(folded, names, n=1)
    hint = f"did you mean {names[near[0]]}?" if near else "an IANA name is needed, such as Europe/Paris"
    raise InvalidSchedule("timezone", text, hint)


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    # "localtime" is another zone on another host, and "Factory" says that none was chosen.
    return {name.casefold(): name for name in zoneinfo.available_timezones() - {"localtime", "Factory"}}


def offset(moment: datetime) -> timedelta:
    """The UTC offset of an aware moment."""
    return moment.utcoffset() or _NOTHING


def transition(wall: datetime) -> datetime:
    """The instant (UTC) at which the clocks change around `wall`, a wall time that is missing or comes twice.

    `wall` is aware in a ZoneInfo, and its two folds have different offsets (PEP 495).
    """
    naive = wall.replace(tzinfo=None, microsecond=0)
    offsets = sorted((offset(wall.replace(fold=0)), offset(wall.replace(fold=1))))
    before = (naive - offsets[1]).replace(tzinfo=UTC)
    after = (naive - offsets[0]).replace(tzinfo=UTC)
    old = offset(before.astimezone(wall.tzinfo))
    # The change lies after `before` and not after `after`; clocks change on whole seconds.
    while after - before > _SECOND:
        middle = (before + (after - before) // 2).replace(microsecond=0)
        if offset(middle.astimezone(wall.tzinfo)) == old:
            before = middle
        else:
            after = middle
    return after


@lru_cache(maxsize=1)
def tzdata_version() -> str:
    """The version of the zone rules in this process, such as "2025b"; "unknown" where nothing tells.

    Plans made under another version are made again. Found as zoneinfo itself finds its data: the system's
    files first (PEP 615), the tzdata package otherwise.
    """
    for directory in map(Path, zoneinfo.TZPATH):
        if (directory / "Europe").is_dir():
            return _system_version(directory)
    try:
        return str(import_module("tzdata").IANA_VERSION)
    except ImportError:
        return "unknown"


def _system_version(directory: Path) -> str:
    for name in ("+VERSION", "tzdata.zi"):
        try:
            with (directory / name).open(encoding="ascii", errors="replace") as file:
                words = file.readline().split()
        except OSError:
            continue
        if words:
            return words[-1]
    return "unknown"
