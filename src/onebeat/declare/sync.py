"""The sync of what code declares with the database: what a person changed stays, what left the code is disabled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from django.core.exceptions import ValidationError
from django.db import DatabaseError, transaction

from onebeat.core.three_way_merge import Turn, merge, turn
from onebeat.db import database_clock, transactions, upserts
from onebeat.declare import stored
from onebeat.declare.sources import Source, Spec
from onebeat.declare.stored import Form
from onebeat.importing.rows import Refused, one_line
from onebeat.models import CodeVersion, Declared, PeriodicTask
from onebeat.verbs import records

#: How many versions of the code are told apart.
_KNOWN = 100

What = Literal["new", "changed", "same", "back", "left", "deleted"]


@dataclass(frozen=True, slots=True)
class Change:
    """What the sync does to one task, or would do.

    `what`: "new": it is made; "changed"; "same"; "back": declared again, after it had left; "left": code no longer
    declares it, so it is disabled; "deleted": a person has deleted it, and it stays so.
    """

    name: str
    what: What
    place: str
    #: The task as it is, in the plain form; None: there is none.
    before: Form | None
    #: The task as it will be.
    after: Form | None
    #: Fields that a person has set otherwise, each with what code says; they stay.
    kept: Mapping[str, Any] = field(default_factory=dict)

    def fields(self) -> dict[str, tuple[Any, Any]]:
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
    #: By source, whose turn it was. "older": nothing of that source was touched.
    turns: dict[str, Turn] = field(default_factory=dict)


def sync(
    using: str, sources: Sequence[Source], *, apply: bool = True, force: bool = False, started: datetime | None = None
) -> Report:
    """Bring the database to what the sources say, as far as their versions of the code have the turn.

    Without `apply` nothing is written. `force`: these versions take the turn, whoever has it. `started`: when this
    process did (None: just now). In one transaction; one task that cannot be written stops no other.
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
        if (whose := _turn(using, source, apply, force, started or now, now)) is not None:
            report.turns[source.name] = whose
            if whose != "older":
                mine.append(source)
    # A name in both places is that of `schedules.py`, which comes first.
    specs: dict[str, tuple[str, Spec]] = {}
    for source in mine:
        for name, spec in source.specs.items():
            specs.setdefault(name, (source.name, spec))
    before = {one.name: one for one in Declared.objects.using(using).all()}
    unsure = {one.name for one in report.refused}
    leaving = [
        one
        for one in before.values()
        if one.source in {source.name for source in mine} and one.name not in specs.keys() | unsure
    ]
    here = stored.read(using, [*specs, *(one.name for one in leaving)])
    for name, (origin, spec) in specs.items():
        _guarded(name, report, _Work(using, before.get(name), now, apply).declare, spec, origin, here)
    for one in leaving:
        _guarded(one.name, report, _Work(using, one, now, apply).leave, here)
    return report


def _guarded(name: str, report: Report, work: Callable[..., Change | None], *args: Any) -> None:
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
    """One task of the sync."""

    def __init__(self, using: str, said: Declared | None, now: datetime, apply: bool) -> None:
        self.using = using
        self.said = said
        self.now = now
        self.apply = apply

    def declare(self, spec: Spec, source: str, here: Mapping[str, Any]) -> Change:
        """Make or change a task that code declares."""
        found = here.get(spec.name)
        if found is None:
            if self.said is not None and self.said.left_at is None:
                self._note(spec, source, self.said.task)
                return Change(spec.name, "deleted", spec.place, None, None, {"deleted": False})
            after = {**stored.defaults(), **spec.said}
            with self._writing() as writes:
                if not writes:
                    return Change(spec.name, "new", spec.place, None, after)
                task = stored.create(self.using, spec.name, spec.said)
                self._note(spec, source, task.pk)
                self._record(task, f"declared in {spec.place}", "")
            return Change(spec.name, "new", spec.place, None, after)
        if found[1] is not None and found[1].origin == "once":
            raise ValidationError(f"the name is the key of a task that runs once: {spec.name!r}")
        change, put = self._merge(spec, found)
        marked = found[1] is not None and found[1].origin == stored.ORIGIN
        if change.what == "same" and marked:
            self._note(spec, source, found[0].pk)
            return change
        with self._writing() as writes:
            if writes:  # compared once more, now that nobody changes it
                found = stored.read(self.using, [spec.name], lock=True).get(spec.name, found)
                change, put = self._merge(spec, found)
                stored.put(self.using, found[0], put)
                self._note(spec, source, found[0].pk)
                if put:
                    self._record(found[0], f"declared in {spec.place}", ", ".join(sorted(put)))
        return change

    def _merge(self, spec: Spec, found: tuple[PeriodicTask, Any]) -> tuple[Change, Form]:
        is_now = stored.form(*found)
        returns = self.said is not None and self.said.left_at is not None
        seen = dict(is_now)
        if returns and self.said is not None and self.said.disabled_by_us:
            seen["enabled"] = True  # but for us it would be
        merged = merge(said_by(self.said), spec.said, seen, stored.defaults())
        after = {**seen, **merged.put}
        put = {name: value for name, value in after.items() if value != is_now[name]}
        what: What = "back" if returns else "changed" if put else "same"
        return Change(spec.name, what, spec.place, is_now, after, merged.kept), put

    def leave(self, here: Mapping[str, Any]) -> Change | None:
        """Disable a task that code no longer declares, unless that has been done."""
        said = self.said
        assert said is not None
        if said.left_at is not None:
            return None
        found = here.get(said.name)
        before = stored.form(*found) if found is not None else None
        after = {**before, "enabled": False} if before is not None else None
        with self._writing() as writes:
            if writes:
                said.left_at, said.disabled_by_us = self.now, bool(before and before["enabled"])
                said.save(using=self.using)
                if found is not None and said.disabled_by_us:
                    stored.put(self.using, found[0], {"enabled": False})
                    self._record(found[0], f"no longer declared in {said.place}", "enabled")
        return Change(said.name, "left", said.place, before, after)

    @contextmanager
    def _writing(self) -> Iterator[bool]:
        """A savepoint for what is written of this task, if anything is to be."""
        if self.apply:
            with transaction.atomic(using=self.using):
                yield True
        else:
            yield False

    def _note(self, spec: Spec, source: str, task: int) -> None:
        """Remember what code says."""
        text = json.dumps(dict(spec.said), sort_keys=True)
        one = self.said or Declared(name=spec.name)
        now = (task, source, spec.place[:500], text, None, False)
        if (one.task, one.source, one.place, one.said, one.left_at, one.disabled_by_us) != now and self.apply:
            one.task, one.source, one.place, one.said, one.left_at, one.disabled_by_us = now
            one.save(using=self.using)

    def _record(self, task: PeriodicTask, why: str, detail: str) -> None:
        records.record(self.using, "sync", {task.pk: task.name}, "code", why, detail, self.now)


def said_by(one: Declared | None) -> dict[str, Any] | None:
    """What code said at the last sync; None: nothing."""
    return None if one is None else dict(json.loads(one.said))


def _turn(using: str, source: Source, apply: bool, force: bool, started: datetime, now: datetime) -> Turn | None:
    """Whose turn it is to say what this source declares. None: it has never declared anything."""
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
    whose = turn(mine, known, seen_at=seen, since=since, started=started, now=now)
    if whose == "older" and force:
        whose = "back"
    if apply and whose != "older":
        version.seen_at = now
        if whose != "current":
            version.known = json.dumps([*(one for one in known if one != mine), mine][-_KNOWN:])
            version.since = now
        version.save(using=using)
    return whose


def seen(using: str, sources: Iterable[Source]) -> bool:
    """Say that processes of these versions are at work. Returns whether all of them have the turn."""
    now, digests = database_clock.now(using), {one.name: one.digest() for one in sources}
    current = True
    for version in CodeVersion.objects.using(using).filter(pk__in=digests):
        if json.loads(version.known)[-1:] == [digests[version.source]]:
            CodeVersion.objects.using(using).filter(pk=version.pk, known=version.known).update(seen_at=now)
        else:
            current = False
    return current
