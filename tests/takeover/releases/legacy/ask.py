"""What the code that is installed says of the rows: each task's next run, each crontab's, and who may do what."""

from datetime import datetime, timedelta

from django.contrib.auth.models import Permission, User
from django.db import connection, transaction
from django.test import Client
from legacy.app import app
from legacy.at import NOW, UTC, pinned

#: An ordinary day, the evenings before both clock changes of Europe, and the one before New York's in autumn.
MOMENTS = [
    NOW,
    datetime(2030, 3, 30, 20, tzinfo=UTC),
    datetime(2030, 10, 26, 20, tzinfo=UTC),
    datetime(2030, 11, 2, 20, tzinfo=UTC),
]
#: Beyond this it means "never".
NEVER = 90_000_000
MODELS = ("intervalschedule", "crontabschedule", "solarschedule", "clockedschedule", "periodictask")


def beliefs():
    """{task: (due, the next run as text) or what went wrong} by django-celery-beat's entries; nothing stays changed."""
    from django_celery_beat.models import PeriodicTask
    from django_celery_beat.schedulers import ModelEntry

    found = {}
    with pinned(NOW):
        for task in PeriodicTask.objects.filter(enabled=True):
            with transaction.atomic():
                try:
                    due, seconds = ModelEntry(task, app=app).is_due()
                    never = seconds is None or abs(seconds) > NEVER
                    found[task.name] = [due, None if never else stamp(NOW + timedelta(seconds=seconds))]
                except Exception as error:
                    found[task.name] = repr(error)
                transaction.set_rollback(True)
    return found


def crontabs():
    """{row: its next run after each moment} by Celery's own arithmetic."""
    from django_celery_beat.models import CrontabSchedule

    found = {}
    for row in CrontabSchedule.objects.all():
        found[row.pk] = []
        for moment in MOMENTS:
            with pinned(moment):
                try:
                    # The entry hands it over in the zone of the app.
                    due, seconds = row.schedule.is_due(moment.astimezone(app.timezone))
                    assert not due
                    found[row.pk].append(stamp(moment + timedelta(seconds=seconds)))
                except Exception as error:
                    found[row.pk].append(repr(error))
    return found


def stamp(instant):
    """To the second: what stands between two looks at the clock is left out."""
    return (instant + timedelta(milliseconds=500)).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def rights():
    """Keys of permissions and of their content types, and what the keeper may do."""
    rows = Permission.objects.filter(content_type__app_label="django_celery_beat")
    return {
        "keys": {
            codename: [key, kind] for codename, key, kind in rows.values_list("codename", "pk", "content_type_id")
        },
        "keeper": sorted(User.objects.get(username="keeper").get_all_permissions()),
    }


def pages(step):
    """{address: status} of the admin, as root for every row there is (or each second, third, ...), and of the lists as
    the keeper.
    """
    client, found = Client(), {}
    client.raise_request_exception = False
    client.force_login(User.objects.get(username="root"))
    for model in MODELS:
        base = f"/admin/django_celery_beat/{model}/"
        with connection.cursor() as cursor:
            cursor.execute("SELECT id FROM django_celery_beat_" + model)
            keys = [key for (key,) in cursor.fetchall()][::step]
        for address in [base, base + "add/"] + [base + f"{key}/change/" for key in keys]:
            found[address] = client.get(address).status_code
    client.force_login(User.objects.get(username="keeper"))
    for model in MODELS:
        found["keeper: " + model] = client.get(f"/admin/django_celery_beat/{model}/").status_code
    return found


def plans():
    """{task: (due, when, why not)} as onebeat plans it at NOW."""
    from onebeat.db import transactions
    from onebeat.models import PeriodicTask, TaskState
    from onebeat.store import plans

    with pinned(NOW), transactions.short_transaction("default"):
        plans.plan("default", PeriodicTask.objects.values_list("pk", flat=True), NOW)
    rows = TaskState.objects.values_list("task__name", "due_at", "quarantine")
    return {name: [due and stamp(due), why] for name, due, why in rows}


def readings():
    """As `crontabs`, by onebeat: the plan that a task would get which starts at each moment."""
    from onebeat.models import CrontabSchedule, PeriodicTask
    from onebeat.store import definitions

    found = {}
    for row in CrontabSchedule.objects.all():
        with transaction.atomic():
            task = PeriodicTask.objects.create(name="-", task="-", crontab=row)
            one = definitions.fetch("default", [task.pk])[task.pk]
            try:
                rule = one.recurrence(NOW)
            except ValueError as error:
                found[row.pk] = repr(error)
            else:
                found[row.pk] = [stamp(rule.after(moment)) for moment in MOMENTS]
            transaction.set_rollback(True)
    return found
