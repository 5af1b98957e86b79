"""From the value of a schedule row to its rule: the one place where a kind's columns are given a meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from onebeat.core.recurrence.base import Recurrence
from onebeat.core.recurrence.clocked import Clocked
from onebeat.core.recurrence.cron import Cron
from onebeat.core.recurrence.interval import Interval
from onebeat.core.recurrence.solar import Solar
from onebeat.errors import InvalidSchedule

#: Where the grid of an interval begins when only the rule itself is in question and not its times.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: Rules do not change, many rows hold the same crontab, and reading one takes longer than deciding by it.
_cron = lru_cache(maxsize=1024)(Cron)

#: What makes the rule of each kind from the row's columns (the model's `VALUE`) and the anchor. Any: the columns of a
#: broken row hold anything.
_RULES: dict[str, Callable[[Sequence[Any], datetime], Recurrence]] = {
    "interval": lambda value, anchor: Interval.of(value[0], value[1], anchor),
    "crontab": lambda value, anchor: _cron(*value),
    "solar": lambda value, anchor: Solar(*value),
    "clocked": lambda value, anchor: Clocked(value[0]),
}


def rule_of(kind: str, value: Sequence[object], anchor: datetime = EPOCH) -> Recurrence:
    """The rule of a schedule row.

    `kind` is "interval", "crontab", "solar" or "clocked"; `value` holds the row's columns in the order of the model's
    `VALUE`, with the instant of a clocked row aware; `anchor` is where the grid of an interval begins, and the other
    kinds do not use it. Raises `InvalidSchedule` for columns that hold no rule, whatever they hold.
    """
    try:
        return _RULES[kind](value, anchor)
    except InvalidSchedule:
        raise
    except Exception as error:  # a row written past every rule holds values that no rule expects
        raise InvalidSchedule(kind, None, str(error) or repr(error)) from error
