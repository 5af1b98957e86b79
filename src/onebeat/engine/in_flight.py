"""Messages in flight: claimed, perhaps with the broker already, and not yet recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from onebeat.store.claims import Batch
from onebeat.store.occurrences import Claimed


class InFlight:
    """The occurrences that this scheduler has claimed and not settled, by the token of their claim."""

    def __init__(self) -> None:
        self._claimed: dict[int, set[int]] = {}
        self._accepted: dict[int, tuple[datetime, list[Claimed]]] = {}
        #: The batches of which nothing is in flight any more, until somebody has removed them.
        self.settled: set[int] = set()

    def add(self, batch: Batch) -> None:
        """A batch was claimed: until they are settled, its occurrences are this scheduler's to give back."""
        self._claimed[batch.token] = {occurrence.id for occurrence in batch.occurrences}

    def accept(self, batch: Batch, occurrence: Claimed) -> None:
        """The broker has the message of this occurrence; that is still to be recorded."""
        self._accepted.setdefault(batch.token, (batch.now, []))[1].append(occurrence)

    def settle(self, token: int, occurrences: Iterable[Claimed]) -> None:
        """These occurrences are recorded, or belong to another scheduler by now."""
        left = self._claimed.get(token, set())
        left.difference_update(occurrence.id for occurrence in occurrences)
        if not left:
            self._claimed.pop(token, None)
            self.settled.add(token)

    def unrecorded(self) -> Iterator[tuple[int, datetime, list[Claimed]]]:
        """What the broker has and nobody has recorded: the token, about when, and the occurrences. Each leaves when the
        caller comes back for the next: if recording it raises, it stays.
        """
        for token in list(self._accepted):
            yield token, *self._accepted[token]
            del self._accepted[token]

    def unsent(self) -> Iterator[int]:
        """The batches of which some was claimed and not sent. Each leaves as with `unrecorded`."""
        for token in list(self._claimed):
            yield token
            del self._claimed[token]
