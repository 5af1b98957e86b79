"""What our tables take, what is oldest in each, and what the retention does next."""

from __future__ import annotations

from typing import TypedDict

from django.apps import apps

from onebeat.conf import current
from onebeat.core.text import iso
from onebeat.db import database_clock, schema
from onebeat.db import storage as tables
from onebeat.models import Beat
from onebeat.store import leases, retention

#: The instant by which the oldest row of a table is known; the keys of these tables grow with time.
_INSTANTS = {"occurrence": "decided_at", "action": "at", "change": "at", "outage": "ended_at", "beat": "started_at"}


class TableSize(TypedDict):
    """One table. None: this database does not say, or rows of this table have no age."""

    rows: int | None
    bytes: int | None
    dead_rows: int | None
    oldest: str | None


class RetentionPlan(TypedDict):
    """What the next piece of the retention deletes. None: such rows stay."""

    sent_before: str | None
    failed_before: str | None
    #: The key of the occurrence after which it goes on; 0: a pass begins.
    after: int
    #: The scheduler that does it, as host:pid; None: none at the moment.
    holder: str | None


class Storage(TypedDict):
    """Ready to be written as JSON. Instants are ISO 8601 in UTC."""

    now: str
    tables: dict[str, TableSize]
    retention: RetentionPlan


def storage(using: str) -> Storage:
    """Each table of ours. On PostgreSQL and MariaDB the rows are the server's estimate."""
    now = database_clock.now(using)
    models = {one._meta.db_table: one for one in apps.get_app_config(schema.LABEL).get_models()}
    ours = sorted(name for name in models if name.startswith(schema.PREFIX))
    found = tables.sizes(using, ours)
    oldest = {}
    for name in ours:
        instant = _INSTANTS.get(name.removeprefix(schema.PREFIX))
        rows = models[name]._base_manager.using(using).order_by("pk")
        oldest[name] = rows.values_list(instant, flat=True).first() if instant else None
    keep = retention.Keep.of(current(), now)
    holder = leases.holder(using, leases.HOUSEKEEPING, now)
    return {
        "now": iso(now),
        "tables": {
            name: {
                "rows": found[name].rows,
                "bytes": found[name].bytes,
                "dead_rows": found[name].dead_rows,
                "oldest": iso(oldest[name]),
            }
            for name in ours
        },
        "retention": {
            "sent_before": iso(keep.sent),
            "failed_before": iso(keep.failed),
            "after": leases.place(using, leases.HOUSEKEEPING),
            "holder": None if holder is None else str(Beat.objects.using(using).filter(pk=holder).first() or holder),
        },
    }
