"""Rows to look at: people change tasks; what follows from that is the engine's to write."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.utils import flatten

from onebeat.admin.pages import OurAdmin


class ReadOnlyAdmin(OurAdmin):
    """Rows to look at."""

    def get_readonly_fields(self, request: Any, obj: Any = None) -> Any:
        """All that are shown."""
        return flatten(self.fields or [])

    def has_add_permission(self, request: Any) -> bool:
        """No."""
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        """No."""
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        """No."""
        return False
