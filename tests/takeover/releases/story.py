"""What is expected of the project in `legacy`: its tasks' next runs, what is sent on the way there and back, and where
django-celery-beat of a release says otherwise, and why.
"""

from __future__ import annotations

NOW = "2030-05-01 12:00:00"
LONG = "a name of 200 characters: " + "ä" * 174
QUOTES = "'quotes' \"and\" %s, {braces}; -- \\"

#: Each enabled task's next run as onebeat plans it at 12:00 on 1 May 2030 (UTC): due now if it is not later.
PLAN = {
    "interval, ran": "2030-05-01 12:06:00",
    "interval, of a duplicate": "2030-05-01 12:06:00",
    "interval, overdue": "2030-05-01 11:45:00",
    "interval, ran on another clock": "2030-05-01 13:20:00",
    "interval, weekly": "2030-05-02 12:00:00",
    "interval, new": "2030-05-08 12:00:00",
    "interval, once, finished": None,
    "interval, to start": "2030-05-01 12:07:00",
    "interval, ended": "2030-05-01 11:40:00",
    "crontab, ran": "2030-05-01 12:00:00",
    "crontab, overdue": "2030-05-01 12:00:00",
    "crontab, by name": "2030-05-06 07:00:00",
    "crontab, new": "2030-05-01 12:15:00",
    "crontab, at night": "2030-05-01 00:30:00",
    "clocked, past": "2030-05-01 11:00:00",
    "clocked, finished": None,
    "clocked, just passed": "2030-05-01 11:59:00",
    "clocked, to come": "2030-05-01 12:05:00",
    "clocked, of a duplicate": "2030-05-01 12:05:00",
    "clocked, next week": "2030-05-08 12:00:00",
    "solar, ran": "2030-04-30 18:31:14",
    "solar, new": "2030-05-01 20:04:21",
    LONG: "2030-05-01 12:00:14",
    QUOTES: "2030-05-01 12:01:00",
}
