"""What runs again and again. Found by its name, and brought into the database by `migrate`."""

from __future__ import annotations

from datetime import timedelta

from books import tasks
from onebeat import Cron, recurring

recurring("friday report", Cron("0 18 * * fri#L", tz="Europe/Paris"), tasks.friday_report)
recurring(
    "closing report",
    Cron("0 18 26-31 * mon-fri", tz="Europe/Paris"),
    tasks.closing_report,
    # A report that is a day late is of no use.
    grace=timedelta(hours=12),
    missed="latest",
    tags=["reports"],
)
