"""A report on the last weekday of a month: on the last Friday, and on the last working day. A year of it, at once."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

folder = tempfile.TemporaryDirectory(prefix="onebeat-example-")
os.environ |= {"DJANGO_SETTINGS_MODULE": "settings", "BOOKS_DB": str(Path(folder.name, "db.sqlite3"))}
sys.path.insert(0, str(Path(__file__).parent))

import django  # noqa: E402
from django.core.management import call_command  # noqa: E402

django.setup()
call_command("migrate", verbosity=0)  # and the two tasks are there
call_command("onebeat", "sync", "--dry-run")

from books.tasks import closing_report  # noqa: E402
from onebeat.testing import Onebeat  # noqa: E402

kit = Onebeat().start()
kit.at("2027-01-01 00:00 Europe/Paris")
closing = []
for one in kit.run_for("1 year"):
    day = f"{one.at:%Y-%m-%d}"
    if one.name == "friday report":
        print(f"{one.at:%a} {day}: the last Friday")
    elif closing_report(day):
        closing.append(day)
        print(f"{one.at:%a} {day}: the last working day")
kit.stop()
print("closed on:", ", ".join(closing))
assert len(closing) == 12
assert closing[:5] == ["2027-01-29", "2027-02-26", "2027-03-31", "2027-04-30", "2027-05-31"]
