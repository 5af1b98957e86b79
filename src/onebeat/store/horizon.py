"""Up to which nominal time the ledger may have been pruned: what is older and decided leaves no record."""

from __future__ import annotations

from datetime import datetime, timedelta

from onebeat.models import Fact

_FACT = "pruned"
#: It moves in steps, so that it is not written for each piece of the work.
_STEP = timedelta(hours=1)


def pruned_before(using: str) -> datetime | None:
    """Records of nominal times before this may be gone; None when nothing has been pruned yet."""
    value = Fact.objects.using(using).filter(name=_FACT).values_list("value", flat=True).first()
    return None if value is None else datetime.fromisoformat(value)


def move(using: str, instant: datetime) -> None:
    """Say that records before `instant` may be gone, before the first of them is deleted. It only moves on."""
    known = pruned_before(using)
    if known is None or instant > known:
        value = (instant + _STEP).isoformat()
        Fact.objects.using(using).update_or_create(name=_FACT, defaults={"value": value})
