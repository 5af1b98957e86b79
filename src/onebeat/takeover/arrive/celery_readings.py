"""Crontab rows that Celery read otherwise than the grammar of new rows does, at the take-over of a database.

A row keeps the meaning that Celery gave it. One that Celery could not read was dropped by django-celery-beat without a
word, so its tasks are disabled: they ran for nobody, and start no surprise run now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connections

from onebeat.db import upserts
from onebeat.takeover.arrive.canonical_values import no_zone, reading
from onebeat.takeover.arrive.foresee import NAMED
from onebeat.takeover.arrive.merge import READ
from onebeat.takeover.arrive.obstacles import DifferentReadings
from onebeat.takeover.arrive.tables import TASKS, ScheduleTable

TABLE = "onebeat_celeryreading"


@dataclass(frozen=True, slots=True)
class OddRow:
    """A crontab row with a verdict: `expanded`, `disabled`, or `zone` for one whose zone this host does not know."""

    key: int
    text: str
    verdict: str
    #: The five fields as Celery read them; empty if it could not.
    meaning: str
    why: str


@dataclass(frozen=True, slots=True)
class Readings:
    """How many crontab rows mean what they meant to Celery, and the rows that need more than that."""

    kept: int
    odd: list[OddRow]


def read_all(table: ScheduleTable) -> Readings:
    """Read every crontab row as Celery did. Of duplicates only the oldest counts."""
    kept, odd = 0, []
    for key, *values in _rows(table):
        texts = tuple(map(str, values))
        seen = reading(texts)
        cron, text, zone = seen.cron, " ".join(texts), no_zone(texts)
        if seen.verdict == "kept":
            kept += not zone
            if zone:
                odd.append(OddRow(key, text, "zone", "", f"{zone}; its tasks are quarantined until it is known"))
        elif cron is None:
            odd.append(OddRow(key, text, "disabled", "", seen.why))
        else:
            fields = (cron.minute, cron.hour, cron.day_of_month, cron.month_of_year, cron.day_of_week)
            odd.append(OddRow(key, text, "expanded", " ".join(fields), f"{seen.why}, and keeps that meaning"))
    return Readings(kept, odd)


def _rows(table: ScheduleTable) -> Iterator[Any]:
    pk, after = table.quoted(table.pk), 0
    sql = (
        f"SELECT c.{pk}, {table.as_text(table.value)} FROM {table.quoted(table.name)} c "
        f"JOIN ({table.grouped()}) m ON m.id = c.{pk} AND m.id = m.oldest "
        f"WHERE c.{pk} > %s ORDER BY c.{pk} LIMIT {READ}"
    )
    while rows := table.rows(sql, [after]):
        yield from rows
        after = rows[-1][0]


def read_differently(table: ScheduleTable) -> Iterator[DifferentReadings]:
    """Groups that the database takes for one value although Celery read their rows differently.

    MySQL's texts are equal whatever spaces follow them: `*` and `* `, of which Celery could not read the second.
    """
    if table.vendor != "mysql":
        return
    pk, columns = table.quoted(table.pk), table.as_text(table.value)
    sql = (
        f"SELECT m.oldest, c.{pk}, {columns} FROM {table.quoted(table.name)} c JOIN ({table.grouped()}) m "
        f"ON m.id = c.{pk} WHERE m.oldest IN (SELECT x.oldest FROM ({table.grouped()}) x "
        f"JOIN {table.quoted(table.name)} y ON y.{pk} = x.id GROUP BY x.oldest "
        f"HAVING COUNT(DISTINCT BINARY CONCAT_WS('|', {columns})) > 1) ORDER BY 1, 2"
    )
    groups: dict[int, dict[str, list[int]]] = {}
    for oldest, key, *values in table.rows(sql):
        cron = reading(tuple(map(str, values))).cron
        groups.setdefault(int(oldest), {}).setdefault(str(cron or ""), []).append(int(key))
    yield from (DifferentReadings(table.name, [*group.values()]) for group in groups.values() if len(group) > 1)


def keep(table: ScheduleTable, rows: Sequence[OddRow]) -> None:
    """Write the readings down. May be called twice."""
    columns = ("crontab", "text", "meaning", "why")
    values = [(row.key, row.text, row.meaning, row.why) for row in rows if row.verdict != "zone"]
    upserts.insert_or_lose(table.using, TABLE, columns, values, ("crontab",))


def disable(table: ScheduleTable, rows: Sequence[OddRow]) -> None:
    """Disable the tasks of rows that Celery could not read."""
    keys = [row.key for row in rows if row.verdict == "disabled"]
    for start in range(0, len(keys), 500):
        part = keys[start : start + 500]
        marks = ", ".join(["%s"] * len(part))
        with connections[table.using].cursor() as cursor:
            cursor.execute(
                f"UPDATE {table.quoted(TASKS)} SET enabled = %s WHERE crontab_id IN ({marks}) AND enabled = %s",
                [False, *part, True],
            )


def as_json(table: ScheduleTable, readings: Readings) -> dict[str, object]:
    """What a report says: how many rows have each verdict, and the first of those that are not simply kept, each with
    the enabled tasks that run on it or on a duplicate of it.
    """
    count = Counter(row.verdict for row in readings.odd)
    shown = readings.odd[:NAMED]
    names = _tasks(table, [row.key for row in shown])
    return {
        **{name: count[name] for name in ("expanded", "disabled", "zone")},
        "kept": readings.kept,
        "rows": [
            {
                "id": row.key,
                "value": row.text,
                "verdict": row.verdict,
                "meaning": row.meaning,
                "why": row.why,
                "tasks": names.get(row.key, []),
            }
            for row in shown
        ],
    }


def _tasks(table: ScheduleTable, keys: Sequence[int]) -> dict[int, list[str]]:
    if not keys:
        return {}
    marks = ", ".join(["%s"] * len(keys))
    sql = (
        f"SELECT m.oldest, t.name FROM {table.quoted(TASKS)} t JOIN ({table.grouped()}) m ON m.id = t.crontab_id "
        f"WHERE m.oldest IN ({marks}) AND t.enabled = %s ORDER BY t.name"
    )
    found: dict[int, list[str]] = {}
    for key, name in table.rows(sql, [*keys, True]):
        found.setdefault(int(key), []).append(str(name))
    return found
