"""Beat, as the installed code runs it, at instants of a clock that is moved. It sends to a real broker."""

from datetime import timedelta

from celery.utils.imports import symbol_by_name
from legacy.app import app
from legacy.at import at, pinned


def beat(first, last):
    """Tick from one minute of the story to another, every ten seconds and until nothing is due."""
    from django_celery_beat.models import PeriodicTask

    instant = at(first)
    with pinned(instant) as move:
        scheduler = symbol_by_name(app.conf.beat_scheduler)(app=app)
        while instant <= at(last):
            for number in range(1, 200):
                # It sees a change by a later time of it: a clock that stands still would hide some.
                move(instant + timedelta(milliseconds=number))
                if scheduler.tick() > 0:
                    break
            else:
                raise AssertionError("it never sleeps")
            instant += timedelta(seconds=10)
        scheduler.close()
    return dict(PeriodicTask.objects.values_list("name", "total_run_count"))
