"""Short ways to ask for a few runs."""

from __future__ import annotations

from datetime import UTC, datetime

from onebeat.core.recurrence import Recurrence


def at(text: str) -> datetime:
    """An instant from ISO 8601, in UTC; UTC is meant when it has no offset."""
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def runs(rule: Recurrence, after: str | datetime, count: int = 3) -> list[str]:
    """The next runs after an instant, as ISO texts in UTC that end in Z."""
    instant = at(after) if isinstance(after, str) else after
    found = []
    for _ in range(count):
        following = rule.after(instant)
        if following is None:
            break
        found.append(following.isoformat().replace("+00:00", "Z"))
        instant = following
    return found
