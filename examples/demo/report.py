"""What became of every occurrence: the ledger and the worker's own record against what was expected."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

#: A nominal time of a task.
Due = tuple[str, datetime]
SECOND = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Expected:
    """What the demo ordered: one-offs by name, and tasks that are due at every second from `first` to `last`."""

    first: datetime = EPOCH
    last: datetime = EPOCH
    once: dict[str, datetime] = field(default_factory=dict)
    every_second: list[str] = field(default_factory=list)

    def seconds(self) -> int:
        """How many nominal times an every-second task has."""
        return (self.last - self.first) // SECOND + 1

    def dues(self) -> set[Due]:
        """All of them."""
        steps = range(self.seconds() if self.every_second else 0)
        every = {(name, self.first + step * SECOND) for name in self.every_second for step in steps}
        return every | set(self.once.items())

    def asked(self, due: Due) -> bool:
        """Whether a nominal time belongs to the question: every-second tasks go on after `last`."""
        name, at = due
        return name in self.once or (name in self.every_second and at <= self.last)


@dataclass
class Group:
    """One line of the table."""

    name: str
    expected: int = 0
    sent: int = 0
    run: int = 0
    lost: int = 0
    duplicates: int = 0
    copies: int = 0
    late: list[float] = field(default_factory=list)

    def __iadd__(self, other: Group) -> Group:
        for name in ("expected", "sent", "run", "lost", "duplicates", "copies", "late"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def cells(self) -> list[str]:
        """As the table shows it."""
        counts = [self.expected, self.sent, self.run, self.lost, self.duplicates, self.copies]
        late = sorted(self.late)
        shown = [f"{1000 * late[int(part * (len(late) - 1))]:,.0f} ms" if late else "-" for part in (0.5, 0.99)]
        return [self.name, *map(str, counts), *shown]


HEAD = ["occurrences", "expected", "sent", "run", "lost", "duplicates", "crash copies", "late p50", "late p99"]


@dataclass
class Outcome:
    """The verdict on all occurrences."""

    groups: list[Group]
    faults: list[str]


def runs(file: Path) -> list[tuple[str, Due]]:
    """What the worker wrote: the Celery id and the nominal time of each run."""
    if not file.exists():
        return []
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [(line["id"], (line["task"], datetime.fromisoformat(line["due_at"]))) for line in lines]


def judge(expected: Expected, ran: Iterable[tuple[str, Due]], held: set[str]) -> Outcome:
    """Compare. `held`: the Celery ids of what the killed scheduler had claimed and not yet recorded as sent: only
    these may have reached the broker twice.
    """
    from onebeat.models import Occurrence

    groups = {name: Group(name) for name in ("one-off", "every second", "of the killed scheduler")}
    faults: list[str] = []
    ledger = {(row.task_name, row.due_at): row for row in Occurrence.objects.filter(run=0, last_due_at=None)}
    times, ids = Counter(due for _, due in ran), {}
    for key, due in ran:
        ids.setdefault(due, set()).add(key)
    wanted = expected.dues()
    for due in sorted(wanted, key=lambda due: (due[1], due[0])):
        row = ledger.get(due)
        key = str(row.celery_task_id) if row else ""
        kind = "of the killed scheduler" if key in held else "one-off" if due[0] in expected.once else "every second"
        group = groups[kind]
        group.expected += 1
        sent = row is not None and row.sent_at is not None
        group.sent += sent
        group.run += bool(times[due])
        group.lost += not (sent and times[due])
        again = max(0, times[due] - 1)
        if key in held and ids.get(due, {key}) == {key}:
            group.copies += again
        else:
            group.duplicates += again
        if row is not None and row.sent_at is not None:
            group.late.append((row.sent_at - row.due_at).total_seconds())
        if row is not None and row.state == Occurrence.State.SKIPPED:
            faults.append(f"{due[0]} at {due[1]} was skipped: {row.reason} {row.detail}")
    extra = [due for due in {*ledger, *times} if expected.asked(due) and due not in wanted]
    faults += [f"{name} has an occurrence at {at} that nobody asked for" for name, at in extra]
    total = Group("all")
    for group in groups.values():
        total += group
    for what in ("lost", "duplicates"):
        if getattr(total, what):
            faults.append(f"{getattr(total, what)} occurrences: {what}")
    return Outcome([*groups.values(), total], faults)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Aligned columns: the first to the left, the others to the right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    texts = [
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    ]
    return "\n".join(["  " + text.rstrip() for text in texts])
