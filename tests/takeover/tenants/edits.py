"""Edits in a tenant's schema while tenant-schemas-celery's scheduler runs. Run by test_tenant_schemas.py."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django_celery_beat.models import IntervalSchedule, PeriodicTask
from tenant_schemas_celery.compat import tenant_context
from tenant_schemas_celery.db_scheduler import TenantAwareDatabaseScheduler
from tenant_schemas_celery.test_app import app
from tenant_schemas_celery.test_utils import create_client

from onebeat.models import Change

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


class Listing(TenantAwareDatabaseScheduler):  # type: ignore[misc]
    """Keeps the names of what it would send."""

    def apply_entry(self, entry: object, producer: object = None) -> None:
        self.sent = [*getattr(self, "sent", []), entry.name]  # type: ignore[attr-defined]

    def run(self) -> list[str]:
        """Tick until it wants to sleep; returns the names of what it sent, sorted."""
        self.sent: list[str] = []
        while self.tick() == 0:
            pass
        return sorted(set(self.sent) - {"celery.backend_cleanup"})


def often(name: str) -> PeriodicTask:
    interval = IntervalSchedule.objects.get_or_create(every=1, period="hours")[0]
    return PeriodicTask.objects.create(name=name, task="a.b", interval=interval, last_run_at=LONG_AGO)


@pytest.mark.usefixtures("transactional_db")
def test_edits_in_a_tenant_s_schema_are_seen_at_once() -> None:
    tenant = create_client(name="one", schema_name="one", domain_url="one.test.com")
    try:
        with tenant_context(tenant):
            disabled = often("disabled")
        scheduler = Listing(app=app)
        assert scheduler.run() == ["disabled"]
        with tenant_context(tenant):
            PeriodicTask.objects.filter(pk=disabled.pk).update(enabled=False, last_run_at=LONG_AGO)
            often("added")
        assert scheduler.run() == ["added"]
        with tenant_context(tenant):
            PeriodicTask.objects.get(name="added").delete()
        assert scheduler.run() == []
        assert not {"disabled", "added"} & scheduler.schedule.keys()
        with tenant_context(tenant):
            assert not Change.objects.exists()  # nobody else takes them away there
    finally:
        tenant.delete(force_drop=True)
