"""The sync of what code declares with the database: what a person changed stays, what left the code is disabled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from django.core.exceptions import ValidationError
from django.db import DatabaseError, transaction

from onebeat.core.three_way_merge import Standing, merge, standing
from onebeat.db import database_clock, transactions, upserts
from onebeat.declare import entries, stored
from onebeat.declare.sources import Source, Spec
from onebeat.declare.stored import StoredTask, TaskValues
from onebeat.importing.rows import Refused, one_line
from onebeat.models import CodeVersion, Declared, PeriodicTask
from onebeat.verbs import records

#: How many versions of the code are told apart.
_KNOWN = 100

What = Literal["new", "changed", "same", "back", "removed", "deleted"]


@dataclass(frozen=True, slots=True)
class Change:
    """What the sync does to one task, or would do.

    `what`: "new": it is made; "changed"; "same"; "back": declared again, after it had left; "removed": code no longer
    declares it, so it is disabled; "deleted": a person has deleted it, and it stays so.
    """

    name: str
    what: What
    place: str
    #: The task as it is, in the plain form; None: there is none.
    before: TaskValues | None
    #: The task as it will be.
    after: TaskValues | None
    #: Fields that a person has set otherwise, each with what code says; they stay.
    kept: Mapping[str, object] = field(default_factory=dict)

    def fields(self) -> dict[str, tuple[object, object]]:
        """The fields that change: as they are, and as they will be."""
        if self.after is None:
            return {}
        before = self.before or stored.defaults()
        return {name: (before[name], value) for name, value in self.after.items() if before[name] != value}


@dataclass(slots=True)
class Report:
    """What a sync did or would do."""

    changes: list[Change] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    #: The task and the part of its declaration that is left out, and why.
    notes: list[tuple[str, str]] = field(default_factory=list)
    #: By source, how its version of the code stands. "older": nothing of that source was touched.
    standings: dict[str, Standing] = field(default_factory=dict)


def sync(
    using: str, sources: Sequence[Source], *, apply: bool = True, force: bool = False, started: datetime | None = None
) -> Report:
    """Bring the database to what the sources say, as far as their versions of the code are the current ones.

    Without `apply` nothing is written. `force`: these versions become the current ones, whatever is stored. `started`:
    when this process did (None: just now). In one transaction; one task that cannot be written stops no other.
    """

    def once() -> Report:
        with transactions.short_transaction(using):
            return _sync(using, sources, apply, force, started)

    if apply:
        return transactions.retrying(using, once)
    return _sync(using, sources, False, force, started)


def _sync(using: str, sources: Sequence[Source], apply: bool, force: bool, started: datetime | None) -> Report:
    now, report = database_clock.now(using), Report()
    mine: list[Source] = []
    for source in sources:
        report.refused += source.refused
        report.notes += source.notes
        if (found := _standing(using, source, apply, force, started or now, now)) is not None:
            report.standings[source.name] = found
            if found != "older":
                mine.append(source)
    # A name in both places is that of `schedules.py`, which comes first.
    specs: dict[str, tuple[str, Spec]] = {}
    for source in mine:
        for name, spec in source.specs.items():
            specs.setdefault(name, (source.name, spec))
    declared = {row.name: row for row in Declared.objects.using(using).all()}
    unsure, synced = {refused.name for refused in report.refused}, {source.name for source in mine}
    removed = [row for name, row in declared.items() if row.source in synced and name not in specs.keys() | unsure]
    here = stored.read(using, [*specs, *(row.name for row in removed)])
    for name, (origin, spec) in specs.items():
        _guarded(name, report, _Work(using, declared.get(name), now, apply).declare, spec, origin, here)
    for row in removed:
        _guarded(row.name, report, _Work(using, row, now, apply).remove, here)
    if apply and "settings" in synced:
        entries.synced(using)
    return report


def _guarded(name: str, report: Report, work: Callable[..., Change | None], *args: object) -> None:
    """One task on its own: what is wrong with it is reported, and the others go on."""
    try:
        change = work(*args)
        report.changes += [change] if change else []
    except ValidationError as error:
        report.refused.append(Refused(name, one_line(error)))
    except DatabaseError as error:
        if transactions.retryable(error):
            raise
        report.refused.append(Refused(name, f"the database refuses it: {error}"))


class _Work:
    """One task of the sync. `declared`: its declaration as of the last sync."""

    def __init__(self, using: str, declared: Declared | None, now: datetime, apply: bool) -> None:
        self.using = using
        self.declared = declared
        self.now = now
        self.apply = apply

    def declare(self, spec: Spec, source: str, here: Mapping[str, StoredTask]) -> Change:
        """Make or change a task that code declares."""
        found = here.get(spec.name)
        if found is None:
            if self.declared is not None and self.declared.removed_at is None:
                self._note(spec, source, self.declared.task)
                return Change(spec.name, "deleted", spec.place, None, None, {"deleted": False})
            after = {**stored.defaults(), **spec.values}
            with self._writing() as writes:
                if writes:
                    task = stored.create(self.using, spec.name, spec.values)
                    self._note(spec, source, task.pk)
                    self._record(task, f"declared in {spec.place}", "")
            return Change(spec.name, "new", spec.place, None, after)
        options = found[1]
        if options is not None and options.origin == "once":
            raise ValidationError(f"the name is the key of a task that runs once: {spec.name!r}")
        change, put = self._merge(spec, source, found)
        if change.what == "same" and options is not None and options.origin == stored.ORIGIN:
            self._note(spec, source, found[0].pk)
            return change
        with self._writing() as writes:
            if writes:  # compared once more, now that nobody changes it
                found = stored.read(self.using, [spec.name], lock=True).get(spec.name, found)
                change, put = self._merge(spec, source, found)
                stored.put(self.using, found[0], put)
                self._note(spec, source, found[0].pk)
                if put:
                    self._record(found[0], f"declared in {spec.place}", ", ".join(sorted(put)))
        return change

    def _merge(self, spec: Spec, source: str, found: StoredTask) -> tuple[Change, TaskValues]:
        is_now = stored.values_of(*found)
        returns = self.declared is not None and self.declared.removed_at is not None
        seen = dict(is_now)
        if returns and self.declared is not None and self.declared.disabled_by_sync:
            seen["enabled"] = True  # as it would be if the sync had not disabled it
        before = declared_values(self.declared)
        if before is None and source == "settings":
            before = entries.written_by_old_beat(self.using, found[0], seen)
        merged = merge(before, spec.values, seen, stored.defaults())
        after = {**seen, **merged.put}
        put = {name: value for name, value in after.items() if value != is_now[name]}
        what: What = "back" if returns else "changed" if put else "same"
        return Change(spec.name, what, spec.place, is_now, after, merged.kept), put

    def remove(self, here: Mapping[str, StoredTask]) -> Change | None:
        """Disable a task that code no longer declares, unless that has been done."""
        declared = self.declared
        assert declared is not None
        if declared.removed_at is not None:
            return None
        found = here.get(declared.name)
        before = stored.values_of(*found) if found is not None else None
        after = {**before, "enabled": False} if before is not None else None
        with self._writing() as writes:
            if writes:
                declared.removed_at, declared.disabled_by_sync = self.now, bool(before and before["enabled"])
                declared.save(using=self.using)
                if found is not None and declared.disabled_by_sync:
                    stored.put(self.using, found[0], {"enabled": False})
                    self._record(found[0], f"no longer declared in {declared.place}", "enabled")
        return Change(declared.name, "removed", declared.place, before, after)

    @contextmanager
    def _writing(self) -> Iterator[bool]:
        """A savepoint for what is written of this task, if anything is to be."""
        if self.apply:
            with transaction.atomic(using=self.using):
                yield True
        else:
            yield False

    def _note(self, spec: Spec, source: str, task: int) -> None:
        """Store the declaration beside the task."""
        row = self.declared or Declared(name=spec.name)
        values = {
            "task": task,
            "source": source,
            "place": spec.place[:500],
            "values": json.dumps(dict(spec.values), sort_keys=True),
            "removed_at": None,
            "disabled_by_sync": False,
        }
        if self.apply and any(getattr(row, name) != value for name, value in values.items()):
            for name, value in values.items():
                setattr(row, name, value)
            row.save(using=self.using)

    def _record(self, task: PeriodicTask, why: str, detail: str) -> None:
        records.record(self.using, "sync", {task.pk: task.name}, "code", why, detail, self.now)


def declared_values(row: Declared | None) -> dict[str, object] | None:
    """What code declared at the last sync; None: nothing, or nothing that still counts."""
    return dict(json.loads(row.values)) if row is not None and row.values else None


def _standing(
    using: str, source: Source, apply: bool, force: bool, started: datetime, now: datetime
) -> Standing | None:
    """How this source's version of the code stands. None: it has never declared anything."""
    versions, mine = CodeVersion.objects.using(using), source.digest()
    if not versions.filter(pk=source.name).exists():
        if not source.specs and not source.refused:
            return None
        if not apply:
            return "newer"
        upserts.insert_instances(using, [CodeVersion(source=source.name, since=now, seen_at=now)], ["source"])
    # Held until the end: two processes that start at once do it one after the other.
    version = (versions.select_for_update() if apply else versions).get(pk=source.name)
    known: list[str] = json.loads(version.known)
    since = version.since if isinstance(version.since, datetime) else None
    seen = version.seen_at if isinstance(version.seen_at, datetime) else None
    found = standing(mine, known, seen_at=seen, since=since, started=started, now=now)
    if found == "older" and force:
        found = "back"
    if apply and found != "older":
        version.seen_at = now
        if found != "current":
            version.known = json.dumps([*(one for one in known if one != mine), mine][-_KNOWN:])
            version.since = now
        version.save(using=using)
    return found


def seen(using: str, sources: Iterable[Source]) -> bool:
    """Say that processes of these versions are at work. Returns whether all of them are the current ones."""
    now, digests = database_clock.now(using), {one.name: one.digest() for one in sources}
    current = True
    for version in CodeVersion.objects.using(using).filter(pk__in=digests):
        if json.loads(version.known)[-1:] == [digests[version.source]]:
            CodeVersion.objects.using(using).filter(pk=version.pk, known=version.known).update(seen_at=now)
        else:
            current = False
    return current
