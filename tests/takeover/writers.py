"""Old workers: they know nothing of a constraint, and write while the database is taken over. Run in processes."""

from __future__ import annotations

import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.db import IntegrityError, connection, transaction

from tests.takeover.old import PREFIX, TASK

#: SQLSTATE or MySQL's number.
FOREIGN_KEY, TAKEN = {"23503", "1452"}, {"23505", "1062"}
MODES = ("autocommit", "atomic", "task first", "atomic")
INSTANTS = [f"2040-01-01 00:00:{second:02}" for second in range(20)]


def write(index: int, stop: str) -> dict[str, Any]:
    """Until the file `stop` is there: find or insert a clocked row, as often as not without looking; insert a task."""
    mode, dice = MODES[index % len(MODES)], random.Random(index)
    written: dict[str, str] = {}
    number = after = refused = 0
    # Some more after the stop, so that every writer meets the constraint too.
    while after < 5:
        after += Path(stop).exists()
        instant, name = dice.choice(INSTANTS), f"{index} {number}"
        try:
            with nullcontext() if mode == "autocommit" else transaction.atomic():
                if mode == "task first" and written:
                    mine = dice.choice(list(written))
                    run(f"UPDATE {PREFIX}periodictask SET total_run_count = 1 WHERE name = %s", mine)
                task(name, clock(instant, look=dice.random() < 0.5))
        except IntegrityError as error:
            if code(error) not in FOREIGN_KEY:
                raise
            refused += 1
            continue
        written[name] = instant
        number += 1
    return {"written": written, "refused": refused}


def clock(instant: str, *, look: bool) -> int:
    """As get_or_create of django-celery-beat with its races, and the row of whoever was first once that is enforced."""
    select = f"SELECT MIN(id) FROM {PREFIX}clockedschedule WHERE clocked_time = %s"
    if look and (found := run(select, instant)[0][0]):
        return int(found)
    try:
        with transaction.atomic():
            run(f"INSERT INTO {PREFIX}clockedschedule (clocked_time) VALUES (%s)", instant)
    except IntegrityError as error:
        if code(error) not in TAKEN:
            raise
        return int(run(select, instant)[0][0])
    return int(run(f"SELECT MAX(id) FROM {PREFIX}clockedschedule WHERE clocked_time = %s", instant)[0][0])


def task(name: str, clocked: int) -> None:
    row = {**TASK, "name": name, "clocked_id": clocked, "one_off": True}
    marks = ", ".join(["%s"] * len(row))
    run(f"INSERT INTO {PREFIX}periodictask ({', '.join(row)}) VALUES ({marks})", *row.values())


def code(error: IntegrityError) -> str:
    cause: Any = error.__cause__
    return str(getattr(cause, "sqlstate", None) or cause.args[0])


def run(sql: str, *params: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall()) if cursor.description else []
