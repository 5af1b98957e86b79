"""One instant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from onebeat.core.recurrence.base import utc
from onebeat.errors import InvalidSchedule


@dataclass(frozen=True, slots=True)
class Clocked:
    """One instant, to the microsecond. Raises InvalidSchedule (field "clocked_time") for a naive one."""

    instant: datetime

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "instant", utc(self.instant))
        except ValueError:
            raise InvalidSchedule("clocked_time", self.instant, "an aware instant is needed") from None

    def after(self, instant: datetime) -> datetime | None:
        """The instant while it lies ahead, None from then on."""
        return self.instant if utc(instant) < self.instant else None
