"""Workers of the old code, which know nothing of a constraint, and write while the tables are taken over."""

import random
from datetime import datetime, timedelta
from pathlib import Path

from django.db import DatabaseError, IntegrityError, transaction
from legacy.at import UTC, column

#: SQLSTATE or MySQL's number.
FOREIGN_KEY, TAKEN = {"23503", "1452"}, {"23505", "1062"}
#: A deadlock, of which the database chose this one as the victim.
DEADLOCK = {"40P01", "1213"}
MODES = ("autocommit", "atomic", "task first", "atomic")
#: The names of the instants that all of them want.
INSTANTS = {str(n): datetime(2040, 1, 1, tzinfo=UTC) + timedelta(seconds=n) for n in range(20)}


def write(index, stop):
    """Until the file `stop` is there: find a clocked row as its users do, or insert one without looking, and a task for
    it. Returns which instant each task is for, and how many were refused, to be tried again.
    """
    from django_celery_beat.models import PeriodicTask

    mode, dice = MODES[index], random.Random(index)
    written = {}
    number = after = refused = 0
    # Some more after the stop, so that every writer meets the constraint too.
    while after < 5:
        after += Path(stop).exists()
        instant, name = dice.choice(sorted(INSTANTS)), f"{index} {number}"
        try:
            if mode == "autocommit":
                task(name, instant, dice)
            else:
                with transaction.atomic():
                    if mode == "task first" and written:
                        mine = dice.choice(sorted(written))
                        PeriodicTask.objects.filter(name=mine).update(total_run_count=1)
                    task(name, instant, dice)
        except DatabaseError as error:
            if code(error) not in FOREIGN_KEY | DEADLOCK:
                raise
            refused += 1
            continue
        written[name] = instant
        number += 1
    return {"written": written, "refused": refused}


def task(name, instant, dice):
    from django_celery_beat.models import PeriodicTask

    row = clocked(column(INSTANTS[instant]), look=dice.random() < 0.5)
    PeriodicTask.objects.create(name=name, task="legacy.written", clocked=row, one_off=True)


def clocked(instant, look):
    from django_celery_beat.models import ClockedSchedule

    wanted = ClockedSchedule.objects.filter(clocked_time=instant)
    try:
        with transaction.atomic():
            if look:
                return ClockedSchedule.objects.get_or_create(clocked_time=instant)[0]
            return ClockedSchedule.objects.create(clocked_time=instant)
    except ClockedSchedule.MultipleObjectsReturned:
        return wanted.first()
    except IntegrityError as error:
        if code(error) not in TAKEN:
            raise
        return wanted.get()


def code(error):
    cause = error.__cause__
    return str(getattr(cause, "pgcode", None) or getattr(cause, "sqlstate", None) or cause.args[0])
