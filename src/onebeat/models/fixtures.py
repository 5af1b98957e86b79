"""Fixtures: a schedule whose value exists under another key adopts that row, and what the fixture points at it follows.

`loaddata` saves each object raw, with the key that it has in the file, in one transaction. What is remembered here
lives as long as that transaction or savepoint: in another run the same key may mean another row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import apps
from django.db import connections, models, transaction
from django.db.models import signals

from onebeat.db.schema import LABEL
from onebeat.models import unique_rows
from onebeat.models.task_rules import SCHEDULES

#: A schedule of the fixture: its model, and its key in the file.
Key = tuple[type[models.Model], Any]
#: A row that points at one: its model, its key, and the attribute that holds the key of the schedule.
Pointer = tuple[type[models.Model], Any, str]


class Run:
    """What one run of `loaddata` has met so far. Called, as Django's `on_commit` asks, it does nothing."""

    def __init__(self, using: str) -> None:
        self.using = using
        #: The key that each schedule of the file has here.
        self.keys: dict[Key, object] = {}
        #: The rows that came before the schedule that they point at.
        self.early: defaultdict[Key, list[Pointer]] = defaultdict(list)

    def __call__(self) -> None: ...

    def met(self, schedule: Key, here: object) -> None:
        """This schedule has the key `here`."""
        self.keys[schedule] = here
        for model, pk, name in self.early.pop(schedule, ()):
            if here != schedule[1]:
                rows = model._base_manager.using(self.using).filter(pk=pk, **{name: schedule[1]})
                rows.update(**{name: here})


def load(schedule: models.Model, kind: str, value: Sequence[str], using: str) -> bool:
    """Whether a schedule of a fixture has adopted the row that holds its value; else it is to be saved as it is.

    Outside a transaction nothing is adopted: nobody could tell what will point at it.
    """
    if (run := _current(using)) is None:
        return False
    model, key = apps.get_model(LABEL, f"{kind}schedule"), schedule.pk
    stored = model._base_manager.using(using).filter(**{name: getattr(schedule, name) for name in value})
    here = key if stored.filter(pk=key).exists() else unique_rows.find(using, schedule, value)
    if key is not None:
        run.met((model, key), key if here is None else here)
    if here is None or here == key:
        return False
    unique_rows.adopt(using, schedule, here)
    return True


def connect() -> None:
    """Connect the receivers, to the models that point at schedules and no others."""
    for model in apps.get_models():
        if any(_pointing(model)):
            signals.pre_save.connect(_before, sender=model)
            signals.post_save.connect(_after, sender=model)


def _before(sender: type[models.Model], instance: Any, raw: bool, using: str, **kwargs: Any) -> None:
    """Point a row of a fixture at the row that its schedule has become, or note that the schedule is still to come."""
    if not raw or (run := _current(using)) is None:
        return
    instance._onebeat_early = []
    for name, schedule in _pointing(sender):
        key = getattr(instance, name)
        if (schedule, key) in run.keys:
            setattr(instance, name, run.keys[schedule, key])
        elif key is not None:
            instance._onebeat_early.append((schedule, name))


def _after(sender: type[models.Model], instance: Any, raw: bool, using: str, **kwargs: Any) -> None:
    if not raw or (run := _current(using)) is None:
        return
    for schedule, name in instance.__dict__.pop("_onebeat_early", ()):
        run.early[schedule, getattr(instance, name)].append((sender, instance.pk, name))


def _current(using: str) -> Run | None:
    """The run of the innermost transaction or savepoint, begun if need be; None outside of any."""
    link: Any = connections[using]
    if not link.in_atomic_block:
        return None
    here = _savepoints(link.savepoint_ids)
    # Django drops the entry when the transaction or the savepoint ends, whichever way it does.
    for sids, call, *_ in link.run_on_commit:
        if isinstance(call, Run) and _savepoints(sids) == here:
            return call
    run = Run(using)
    transaction.on_commit(run, using=using)
    return run


def _savepoints(sids: Any) -> set[str]:
    return {sid for sid in sids if sid is not None}


def _pointing(model: type[models.Model]) -> Iterator[tuple[str, type[models.Model]]]:
    """The attributes of a model that hold keys of schedules, each with the schedule's model."""
    schedules = {kind: apps.get_model(LABEL, f"{kind}schedule") for kind in SCHEDULES}
    for field in model._meta.concrete_model._meta.local_concrete_fields:  # type: ignore[union-attr]
        target: Any = field.remote_field.model if field.remote_field else None
        if target in schedules.values() and not field.primary_key:
            yield field.attname, target
    if model is apps.get_model(LABEL, "TaskState"):
        yield from schedules.items()
