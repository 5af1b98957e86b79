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
from onebeat.takeover.arrive.merge import NAMED, READ, Table, as_text

TABLE = "onebeat_celeryreading"


@dataclass(frozen=True, slots=True)
class Odd:
    """A crontab row with a verdict: `expanded`, `disabled`, or `zone` for one whose zone this host does not know."""

    key: int
    text: str
    verdict: str
    #: The five fields as Celery read them; empty if it could not.
    meaning: str
    why: str


def odd(table: Table) -> tuple[int, list[Odd]]:
    """How many crontab rows mean what they meant, and the others. Of duplicates only the oldest counts."""
    kept, found = 0, []
    for key, *values in _rows(table):
        texts = tuple(map(str, values))
        seen = reading(texts)
        cron, text, zone = seen.cron, " ".join(texts), no_zone(texts)
        if seen.verdict == "kept":
            kept += not zone
            if zone:
                found.append(Odd(key, text, "zone", "", f"{zone}; its tasks are quarantined until it is known"))
        elif cron is None:
            found.append(Odd(key, text, "disabled", "", seen.why))
        else:
            fields = (cron.minute, cron.hour, cron.day_of_month, cron.month_of_year, cron.day_of_week)
            found.append(Odd(key, text, "expanded", " ".join(fields), f"{seen.why}, and keeps that meaning"))
    return kept, found


def _rows(table: Table) -> Iterator[Any]:
    pk, after = table.quoted(table.pk), 0
    sql = (
        f"SELECT c.{pk}, {as_text(table, table.value)} FROM {table.quoted(table.name)} c "
        f"JOIN ({table.grouped()}) m ON m.id = c.{pk} AND m.id = m.oldest "
        f"WHERE c.{pk} > %s ORDER BY c.{pk} LIMIT {READ}"
    )
    while rows := table.rows(sql, [after]):
        yield from rows
        after = rows[-1][0]


def torn(table: Table) -> Iterator[str]:
    """Groups that the database takes for one value although Celery read their rows differently, one line each.

    MySQL's texts are equal whatever spaces follow them: `*` and `* `, of which Celery could not read the second.
    """
    if connections[table.using].vendor != "mysql":
        return
    pk, columns = table.quoted(table.pk), as_text(table, table.value)
    sql = (
        f"SELECT m.oldest, c.{pk}, {columns} FROM {table.quoted(table.name)} c JOIN ({table.grouped()}) m "
        f"ON m.id = c.{pk} WHERE m.oldest IN (SELECT x.oldest FROM ({table.grouped()}) x "
        f"JOIN {table.quoted(table.name)} y ON y.{pk} = x.id GROUP BY x.oldest "
        f"HAVING COUNT(DISTINCT BINARY CONCAT_WS('|', {columns})) > 1) ORDER BY 1, 2"
    )
    found: dict[int, dict[str, list[str]]] = {}
    for oldest, key, *values in table.rows(sql):
        seen = reading(tuple(map(str, values)))
        meaning = "" if seen.cron is None else str(seen.cron)
        found.setdefault(int(oldest), {}).setdefault(meaning, []).append(str(key))
    for meanings in found.values():
        if len(meanings) > 1:
            rows = " and ".join(", ".join(keys[:20]) for keys in meanings.values())
            yield (
                f"{table.name}: the rows {rows} hold one value to the database, and Celery read them differently. "
                "Delete the spaces at the end of their fields, or give one of them another value; then migrate again."
            )


def keep(table: Table, rows: Sequence[Odd]) -> None:
    """Write the readings down. May be called twice."""
    kept = [one for one in rows if one.verdict != "zone"]
    columns = ("crontab", "text", "meaning", "why")
    values = [(one.key, one.text, one.meaning, one.why) for one in kept]
    upserts.insert_or_lose(table.using, TABLE, columns, values, ("crontab",))


def disable(table: Table, tasks: str, rows: Sequence[Odd]) -> None:
    """Disable the tasks of rows that Celery could not read; `tasks` is the tasks' table."""
    keys = [one.key for one in rows if one.verdict == "disabled"]
    for start in range(0, len(keys), 500):
        part = keys[start : start + 500]
        marks = ", ".join(["%s"] * len(part))
        with connections[table.using].cursor() as cursor:
            cursor.execute(
                f"UPDATE {table.quoted(tasks)} SET enabled = %s WHERE crontab_id IN ({marks}) AND enabled = %s",
                [False, *part, True],
            )


def as_json(table: Table, tasks: str, kept: int, rows: Sequence[Odd]) -> dict[str, Any]:
    """What a report says: how many rows have each verdict, and the first of those that are not simply kept, each with
    the enabled tasks that run on it or on a duplicate of it.
    """
    count = Counter(one.verdict for one in rows)
    shown = rows[:NAMED]
    names = _tasks(table, tasks, [one.key for one in shown])
    return {
        **{name: count[name] for name in ("expanded", "disabled", "zone")},
        "kept": kept,
        "rows": [
            {
                "id": one.key,
                "value": one.text,
                "verdict": one.verdict,
                "meaning": one.meaning,
                "why": one.why,
                "tasks": names.get(one.key, []),
            }
            for one in shown
        ],
    }


def _tasks(table: Table, tasks: str, keys: Sequence[int]) -> dict[int, list[str]]:
    if not keys:
        return {}
    marks = ", ".join(["%s"] * len(keys))
    sql = (
        f"SELECT m.oldest, t.name FROM {table.quoted(tasks)} t JOIN ({table.grouped()}) m ON m.id = t.crontab_id "
        f"WHERE m.oldest IN ({marks}) AND t.enabled = %s ORDER BY t.name"
    )
    found: dict[int, list[str]] = {}
    for key, name in table.rows(sql, [*keys, True]):
        found.setdefault(int(key), []).append(str(name))
    return found


def lines(found: dict[str, Any], *, done: bool) -> list[str]:
    """The same for people."""
    if not found.get("rows"):
        return []
    head = (
        f"crontabs as Celery read them: {found['kept']} mean what they say, {found['expanded']} keep another meaning, "
        f"{found['disabled']} could not be read, {found['zone']} have a time zone that is not known here"
    )
    told = [head]
    for one in found["rows"]:
        names = ", ".join(one["tasks"][:10]) + (" and more" if len(one["tasks"]) > 10 else "")
        what = {"disabled": "disabled" if done else "would be disabled"}.get(one["verdict"], "used by")
        told.append(f"  crontab {one['id']} ({one['value']}): {one['why']}" + (f"; {what}: {names}" if names else ""))
    return told


def foreseen(table: Table, tasks: str) -> dict[str, Any]:
    """The report of what `keep` and `disable` would do."""
    return as_json(table, tasks, *odd(table))
