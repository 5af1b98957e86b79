"""Where declarations come from: the `schedules.py` of apps, and CELERY_BEAT_SCHEDULE, in one form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onebeat.core.recurrence import Solar
from onebeat.declare import registry, stored
from onebeat.declare.registry import Declaration
from onebeat.declare.values import Cron, Every
from onebeat.importing import result_cleanup, settings
from onebeat.importing.rows import RUN_STATE, Refused, Row
from onebeat.models import CrontabSchedule, IntervalSchedule, SolarSchedule
from onebeat.models.fields import default_zone
from onebeat.models.schedule_value import ScheduleValue

#: Always compared, also where they hold the default, so that a person's change of them is visible.
_ALWAYS = (stored.SCHEDULE, "task", "args", "kwargs", "enabled")


@dataclass(frozen=True, slots=True)
class Spec:
    """A task as code declares it: `values` has the fields that it names, in the plain form."""

    name: str
    place: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Source:
    """What one source declares now, and what of it cannot be kept."""

    name: str
    specs: dict[str, Spec] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    #: The task and the part of it that is left out or read otherwise, and why.
    notes: list[tuple[str, str]] = field(default_factory=list)

    def digest(self) -> str:
        """What tells this version of the code from others."""
        declared = [[name, dict(self.specs[name].values)] for name in sorted(self.specs)]
        text = json.dumps([declared, sorted(one.name for one in self.refused)], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def of_apps() -> Source:
    """What the `schedules.py` of the apps declare. Raises what a module raises."""
    found = Source("schedules")
    for one in registry.declared().values():
        found.specs[one.name] = Spec(one.name, one.place, _values(schedule_of(one), one.fields))
    return found


def of_settings(app: Any) -> Source:
    """The entries of CELERY_BEAT_SCHEDULE, with what the app's modules add to them."""
    found = Source("settings")
    where, entries = settings.entries(app)
    if result_cleanup.needed(app):
        entries = {result_cleanup.NAME: result_cleanup.entry(), **entries}
    for row in settings.rows(entries):
        if isinstance(row, Refused):
            found.refused.append(row)
        else:
            found.specs[row.name] = of_row(row, where)
            found.notes.extend((row.name, note) for note in row.notes)
    return found


def of_row(row: Row, place: str) -> Spec:
    """An entry of CELERY_BEAT_SCHEDULE as code declares it."""
    fields = {name: value for name, value in row.fields.items() if name not in RUN_STATE}
    return Spec(row.name, place, _values(row.schedule(), {**fields, "extra": dict(row.extra)}))


def schedule_of(one: Declaration) -> ScheduleValue:
    """The schedule of a declaration as a row, not saved."""
    made: ScheduleValue
    match one.schedule:
        case Cron() as cron:
            names = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
            made = CrontabSchedule(**dict(zip(names, cron.texts(), strict=True)), timezone=cron.tz or default_zone())
        case Every() as every:
            made = IntervalSchedule(every=every.every, period=every.period)
        case Solar() as solar:
            # Decimals as text: a float has more places than the column.
            place = {"latitude": f"{solar.latitude:.6f}", "longitude": f"{solar.longitude:.6f}"}
            made = SolarSchedule(event=solar.event, **place)
    made.clean_value()
    return made


def _values(schedule: ScheduleValue, fields: Mapping[str, object]) -> dict[str, object]:
    usual = stored.defaults()
    # A schedule as it reads back from its own form: what is compared has gone the same way.
    values: dict[str, object] = {
        stored.SCHEDULE: stored.plain_schedule(stored.schedule(stored.plain_schedule(schedule)))
    }
    values |= {name: stored.plain(name, value) for name, value in fields.items()}
    values.setdefault("enabled", True)
    return {name: value for name, value in values.items() if name in _ALWAYS or value != usual[name]}
