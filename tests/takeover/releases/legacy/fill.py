"""Ugly data, as years of races, raw SQL and old validators leave it. Written by django-celery-beat's own models where
they let it, else by SQL.
"""

from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    PeriodicTask,
    SolarSchedule,
)
from legacy.at import NOW, at, column, last_run, pinned
from legacy.clients.models import OwnedTask, Reminder, Rota

INTERVALS = {
    "ten": (10, "minutes"),
    "ten again": (10, "minutes"),
    "ten once more": (10, "minutes"),
    "hour": (1, "hours"),
    "week": (7, "days"),
    "three": (180, "seconds"),
    "zero": (0, "minutes"),
    "fortnight": (1, "fortnights"),
}
#: minute, hour, day of month, month, day of week, zone
CRONTABS = {
    "quarters": "*/15 * * * * UTC",
    "quarters again": "*/15 * * * * UTC",
    "mondays": "0 9 * * 1 Europe/Berlin",
    "mondays again": "0 9 * * 1 Europe/Berlin",
    "mondays by name": "0 9 * * mon Europe/Berlin",
    "noon": "0 12 * * * UTC",
    "night": "30 2 * * * Europe/Berlin",
    "night twice": "0,30 2 * * * Europe/Berlin",
    "night steps": "*/20 2 * * * Europe/Berlin",
    "new york": "30 1 * * * America/New_York",
    "leap": "0 0 29 2 * UTC",
    "friday 13th": "0 0 13 * 5 UTC",
    "wrapped": "0 22-2 * * fri-mon UTC",
    "office": "15,45 8-18/2 * * mon-fri Asia/Kathmandu",
    "halves": "0 0 1 1,7 * UTC",
    "half read": "*/5-20 * * * * UTC",
    "every friday": "0 0 * * fri#2 UTC",
    "no such minute": "61 * * * * UTC",
    "sunday as 7": "0 0 * * 7 UTC",
    "31 february": "0 0 31 2 * UTC",
}
CLOCKS = {
    "past": -60,
    "past again": -60,
    "just passed": -1,
    "to come": 5,
    "to come again": 5,
    "to come once more": 5,
    "next week": 7 * 24 * 60,
}
SOLAR = {"sunset in berlin": ("sunset", "52.520008", "13.404954"), "dawn": ("dawn_civil", "-33.868820", "151.209290")}

#: name: (schedule, minutes to the last run or None, other fields)
TASKS = {
    "interval, ran": ("interval", "ten", -4, {"total_run_count": 3}),
    "interval, of a duplicate": ("interval", "ten once more", -4, {"total_run_count": 3, "args": '["a", 1]'}),
    "interval, overdue": ("interval", "ten again", -25, {"total_run_count": 9}),
    "interval, ran on another clock": ("interval", "hour", 20, {"total_run_count": 9}),
    "interval, weekly": ("interval", "week", -6 * 24 * 60, {"total_run_count": 2}),
    "interval, new": ("interval", "week", None, {}),
    "interval, disabled": ("interval", "ten again", None, {"enabled": False}),
    "interval, once, finished": ("interval", "ten", -30, {"one_off": True, "total_run_count": 1}),
    "interval, to start": ("interval", "hour", None, {"start_time": column(at(7))}),
    "interval, ended": ("interval", "ten", -30, {"expires": column(at(-5)), "total_run_count": 5}),
    "interval, of no length": ("interval", "zero", None, {"enabled": False}),
    "interval, of no unit": ("interval", "fortnight", None, {"enabled": False}),
    "crontab, ran": ("crontab", "quarters again", -14, {"total_run_count": 3, "kwargs": '{"a": "ü"}'}),
    "crontab, overdue": ("crontab", "noon", -24 * 60, {"total_run_count": 3, "priority": 3}),
    "crontab, by name": ("crontab", "mondays by name", -2 * 24 * 60, {"total_run_count": 3, "queue": ""}),
    "crontab, new": ("crontab", "quarters", None, {"expire_seconds": 900}),
    "crontab, at night": ("crontab", "night", -12 * 60, {"total_run_count": 4}),
    "crontab, half read": ("crontab", "half read", -3, {"total_run_count": 4}),
    "crontab, every friday": ("crontab", "every friday", -5 * 24 * 60, {"total_run_count": 4}),
    "crontab, disabled": ("crontab", "mondays again", None, {"enabled": False}),
    "crontab, unreadable": ("crontab", "no such minute", None, {"enabled": False}),
    "crontab, on sunday": ("crontab", "sunday as 7", None, {"enabled": False}),
    "crontab, never": ("crontab", "31 february", None, {"enabled": False}),
    "clocked, past": ("clocked", "past", None, {"one_off": True}),
    "clocked, finished": ("clocked", "past again", -60, {"one_off": True, "total_run_count": 1}),
    "clocked, finished and off": ("clocked", "past", None, {"one_off": True, "enabled": False}),
    "clocked, just passed": ("clocked", "just passed", None, {"one_off": True}),
    "clocked, to come": ("clocked", "to come", None, {"one_off": True, "headers": '{"x": "y"}'}),
    "clocked, of a duplicate": ("clocked", "to come once more", None, {"one_off": True}),
    "clocked, next week": ("clocked", "next week", None, {"one_off": True}),
    "solar, ran": ("solar", "sunset in berlin", -20 * 60, {"total_run_count": 4}),
    "solar, new": ("solar", "dawn", None, {}),
    "a name of 200 characters: " + "ä" * 174: ("interval", "three", -1, {"total_run_count": 1}),
    "'quotes' \"and\" %s, {braces}; -- \\": ("interval", "hour", -59, {"total_run_count": 1}),
}
#: What is the matter with rows that only SQL makes: (columns, values) for the task of this name.
BROKEN = {
    "two schedules": ("crontab_id", "quarters"),
    "no schedule": ("interval_id", None),
    "arguments that are no list": ("args", '{"a": 1'),
}


def fill():
    keys = {
        "interval": {name: insert("intervalschedule", every=n, period=unit) for name, (n, unit) in INTERVALS.items()},
        "crontab": {name: crontab(text.split()) for name, text in CRONTABS.items()},
        "clocked": {name: ClockedSchedule.objects.create(clocked_time=column(at(m))).pk for name, m in CLOCKS.items()},
        "solar": {
            name: SolarSchedule.objects.create(event=event, latitude=north, longitude=east).pk
            for name, (event, north, east) in SOLAR.items()
        },
    }
    for name, (kind, schedule, ran, fields) in TASKS.items():
        with pinned(at(-1.5)):
            row = PeriodicTask(name=name, task="legacy." + name[:20].replace(" ", "_"), **fields)
            setattr(row, kind + "_id", keys[kind][schedule])
            row.last_run_at = None if ran is None else last_run(at(ran))
            row.save()
    for name, (column_name, value) in BROKEN.items():
        with pinned(at(-1.5)):
            row = PeriodicTask(name=name, task="legacy.broken", enabled=False, interval_id=keys["interval"]["ten"])
            row.save()
        value = keys["crontab"].get(value, value)
        PeriodicTask.objects.filter(pk=row.pk).update(**{column_name: value})
    hang_on(keys)
    people()


def crontab(fields):
    names = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone")
    return CrontabSchedule.objects.create(**dict(zip(names, fields))).pk


def insert(table, **row):
    with connection.cursor() as cursor:
        sql = "INSERT INTO django_celery_beat_{} ({}) VALUES ({})"
        cursor.execute(sql.format(table, ", ".join(row), ", ".join(["%s"] * len(row))), list(row.values()))
        cursor.execute(f"SELECT MAX(id) FROM django_celery_beat_{table}")
        return cursor.fetchone()[0]


def hang_on(keys):
    """Rows of other people's models, and of a table that no model knows."""
    for name in ("past again", "to come", "to come once more"):
        task = PeriodicTask.objects.get(name="clocked, to come")
        Reminder.objects.create(clocked_id=keys["clocked"][name], task=task, note=name)
    Rota.objects.create(crontab_id=keys["crontab"]["mondays by name"], note="mondays by name")
    with pinned(NOW):
        OwnedTask.objects.create(
            name="owned",
            task="legacy.owned",
            owner="somebody",
            enabled=False,
            interval_id=keys["interval"]["ten again"],
        )
    with connection.cursor() as cursor:
        for kind in ("interval", "clocked"):
            cursor.execute(
                f"CREATE TABLE unknown_{kind} (nr INTEGER PRIMARY KEY, plan INTEGER NOT NULL, "
                f"FOREIGN KEY (plan) REFERENCES django_celery_beat_{kind}schedule (id))"
            )
            for number, key in enumerate(keys[kind].values()):
                cursor.execute(f"INSERT INTO unknown_{kind} VALUES (%s, %s)", [number, key])


def people():
    User.objects.create_superuser("root", "root@example.com", "-")
    keeper = User.objects.create_user("keeper", "keeper@example.com", "-", is_staff=True)
    mine = Permission.objects.filter(content_type__app_label="django_celery_beat")
    keeper.user_permissions.add(mine.get(codename="change_periodictask"), mine.get(codename="view_clockedschedule"))
    group = Group.objects.create(name="cleaners")
    group.permissions.add(*mine.filter(codename__startswith="delete_"))
    keeper.groups.add(group)
