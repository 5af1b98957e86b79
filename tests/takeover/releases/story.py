"""What is expected of the project in `legacy`: its tasks' next runs, what is sent on the way there and back, and where
django-celery-beat of a release says otherwise, and why.
"""

from __future__ import annotations

NOW = "2030-05-01 12:00:00"
LONG = "a name of 200 characters: " + "ä" * 174
QUOTES = "'quotes' \"and\" %s, {braces}; -- \\"

#: Each enabled task's next run as onebeat plans it at NOW: due if it is not later. "" is never.
PLAN = {
    "interval, ran": "2030-05-01 12:06:00",
    "interval, of a duplicate": "2030-05-01 12:06:00",
    "interval, overdue": "2030-05-01 11:45:00",
    "interval, ran on another clock": "2030-05-01 13:20:00",
    "interval, weekly": "2030-05-02 12:00:00",
    "interval, new": "2030-05-08 11:58:30",
    "interval, once, finished": "",
    "interval, to start": "2030-05-01 12:07:00",
    "interval, ended": "2030-05-01 11:40:00",
    "crontab, ran": "2030-05-01 12:00:00",
    "crontab, overdue": "2030-05-01 12:00:00",
    "crontab, by name": "2030-05-06 07:00:00",
    "crontab, new": "2030-05-01 12:00:00",
    "crontab, at night": "2030-05-01 00:30:00",
    "crontab, half read": "2030-05-01 12:00:00",
    "crontab, every friday": "2030-05-03 00:00:00",
    "clocked, past": "2030-05-01 11:00:00",
    "clocked, finished": "",
    "clocked, just passed": "2030-05-01 11:59:00",
    "clocked, to come": "2030-05-01 12:05:00",
    "clocked, of a duplicate": "2030-05-01 12:05:00",
    "clocked, next week": "2030-05-08 12:00:00",
    "solar, ran": "2030-04-30 18:31:10",
    "solar, new": "2030-05-01 20:04:21",
    LONG: "2030-05-01 12:02:00",
    QUOTES: "2030-05-01 12:01:00",
}

#: A task that never ran counts from its last change, as since 2.6. Until 2.5 it counts from when a beat first sees
#: it, and without zones it takes the last change for UTC.
FROM_LAST_CHANGE = {"interval, new", "crontab, new"}
#: Without zones, django-celery-beat takes every naive time for UTC. onebeat takes those that people enter for what
#: they are, wall-clock time of TIME_ZONE; the last run, which beat wrote, is UTC to both.
TAKEN_FOR_UTC = {
    *("interval, to start", "clocked, past", "clocked, just passed", "clocked, to come", "clocked, of a duplicate"),
    "clocked, next week",
}
#: And it forgets the zones of crontabs: this one has midnight in UTC.
ZONES_FORGOTTEN = {"crontab, every friday"}
#: Until 2.5 only the message expires: it is sent, for the worker to throw it away. Later ones disable the task at its
#: end, and onebeat records the turn before it as expired.
MESSAGE_ENDS = {"interval, ended"}

#: What `handback` says must not be left to it as it is, without zones.
WRONG_THERE = {
    *("clocked, next week", "crontab, new", "crontab, ran", "crontab, overdue", "crontab, half read"),
    "crontab, every friday",
}

#: What is sent from NOW to 12:09:30: the nominal times of each task, as onebeat says them.
SENT = {
    "solar, ran": ["04-30 18:31:10"],
    "crontab, at night": ["05-01 00:30:00"],
    "clocked, past": ["05-01 11:00:00"],
    "interval, overdue": ["05-01 11:55:00", "05-01 12:05:00"],
    "clocked, just passed": ["05-01 11:59:00"],
    "crontab, ran": ["05-01 12:00:00"],
    "crontab, overdue": ["05-01 12:00:00"],
    "crontab, new": ["05-01 12:00:00"],
    "crontab, half read": ["05-01 12:00:00", "05-01 12:05:00"],
    QUOTES: ["05-01 12:01:00"],
    "onebeat, once": ["05-01 12:02:00"],
    "clocked, to come": ["05-01 12:05:00"],
    "clocked, of a duplicate": ["05-01 12:05:00"],
    "interval, ran": ["05-01 12:06:00"],
    "interval, of a duplicate": ["05-01 12:06:00"],
    "interval, to start": ["05-01 12:07:00"],
    LONG: ["05-01 12:02:00", "05-01 12:05:00", "05-01 12:08:00"],
}

#: How often django-celery-beat sends each after that, until 12:31.
BACK = {
    "interval, ran": 2,
    "interval, of a duplicate": 2,
    "interval, overdue": 2,
    "crontab, ran": 2,
    "crontab, new": 2,
    "crontab, half read": 5,
    "back, once": 1,
    LONG: 7,
}

#: Crontabs of which onebeat says otherwise than Celery, and what it says, evening by evening before the clocks change:
#: an ordinary day, Europe's spring and autumn, New York's autumn.
CLOCK_CHANGES = {
    # A time in the gap runs at its end, not an hour later, and a wildcard does not run in it.
    "30 2 * * * Europe/Berlin": [
        *("2030-05-02 00:30:00", "2030-03-31 01:00:00", "2030-10-27 00:30:00", "2030-11-03 01:30:00"),
    ],
    "*/20 2 * * * Europe/Berlin": [
        *("2030-05-02 00:00:00", "2030-04-01 00:00:00", "2030-10-27 00:00:00", "2030-11-03 01:00:00"),
    ],
}
#: The five fields of crontabs that have another spelling afterwards.
SPELLED = {
    "0 9 * * mon": "0 9 * * 1",
    "0 22-2 * * fri-mon": "0 22-2 * * 5-1",
    "15,45 8-18/2 * * mon-fri": "15,45 8-18/2 * * 1-5",
}
#: Rows that are left of each kind; solar ones were unique before.
LEFT = {"interval": 6, "crontab": 17, "solar": 2, "clocked": 4}
