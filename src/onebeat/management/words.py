"""What the subcommands share in reading their arguments."""

from __future__ import annotations

from datetime import UTC, datetime

from django.core.management.base import CommandError

from onebeat.models.instants import to_utc


def instant(option: str, text: str) -> datetime:
    """An ISO 8601 time as an instant; one without a zone is of TIME_ZONE. Exit code 2 for a text that is no time."""
    try:
        found = datetime.fromisoformat(text)
        return to_utc(found) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise CommandError(f"{option}: {text!r} is no time; write it as 2026-03-28T09:00:00Z", returncode=2) from error
