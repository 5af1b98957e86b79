"""The tasks' queryset: bulk ways keep the rules of `save`, and the engine sees what they change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import models, transaction

from onebeat.models import rules
from onebeat.models.deletion import tell
from onebeat.models.edits import clean_values, plain
from onebeat.store import hints, vendors

if TYPE_CHECKING:
    from onebeat.models.tasks import PeriodicTask

#: Fields that no plan depends on: a change in these alone needs no hint.
UNPLANNED = {"description", "last_run_at", "total_run_count", "date_changed"}


class PeriodicTaskQuerySet(models.QuerySet["PeriodicTask"]):
    """Raises `ValidationError`, naming the field, for what `save` would refuse. A clocked task becomes one-off."""

    def enabled(self) -> PeriodicTaskQuerySet:
        """Tasks that are enabled, with their schedules."""
        return self.filter(enabled=True).select_related("interval", "crontab", "solar", "clocked")

    def bulk_create(self, objs: Iterable[PeriodicTask], *args: Any, **kwargs: Any) -> list[PeriodicTask]:
        """As Django's."""
        tasks = list(objs)
        for task in tasks:
            _once_if_clocked(task)
            rules.check_task(task)
        self._for_write = True
        with transaction.atomic(using=self.db):
            made = super().bulk_create(tasks, *args, **kwargs)
            hints.changed(self.db, "task", [task.pk for task in made])
            untold = [task.name for task in made if task.pk is None]  # MySQL, or ignored conflicts
            for start in range(0, len(untold), 500):
                named = self.model._base_manager.using(self.db).filter(name__in=untold[start : start + 500])
                hints.changed_where(self.db, "task", named)
        return made

    def bulk_update(self, objs: Iterable[PeriodicTask], fields: Iterable[str], batch_size: int | None = None) -> int:
        """As Django's."""
        tasks, names = list(objs), list(fields)
        clocked = bool({"clocked", "clocked_id"} & set(names))
        if clocked and "one_off" not in names:
            names.append("one_off")
        for task in tasks:
            if clocked:
                _once_if_clocked(task)
            rules.check_task(task, names)
        self._for_write = True
        with transaction.atomic(using=self.db):
            done = plain(self).bulk_update(tasks, names, batch_size)
            if set(names) - UNPLANNED:
                off = [task.pk for task in tasks if not task.enabled]
                hints.changed(self.db, "task", off, off=True)
                hints.changed(self.db, "task", {task.pk for task in tasks} - set(off))
        return done

    def update(self, **kwargs: Any) -> int:
        """As Django's."""
        clean_values(self.model, kwargs)
        for name in rules.JSON_FIELDS.keys() & kwargs.keys():
            if not hasattr(kwargs[name], "resolve_expression"):
                try:
                    rules.check_json(name, kwargs[name])
                    if name == "headers":
                        rules.check_headers(kwargs[name])
                except ValidationError as error:
                    raise ValidationError({name: error}) from error
        if kwargs.get("clocked", kwargs.get("clocked_id")) is not None:
            kwargs.setdefault("one_off", True)
        self._for_write = True
        with vendors.writing(self.db):
            for rows, errors in rules.broken_by_update(kwargs):
                if self.filter(rows).exists():
                    raise ValidationError(errors)
            if kwargs.keys() - UNPLANNED:
                hints.changed_where(self.db, "task", self, off=kwargs.get("enabled") is False)
            return super().update(**kwargs)

    update.alters_data = True  # type: ignore[attr-defined]

    def delete(self) -> tuple[int, dict[str, int]]:
        """As Django's."""
        self._for_write = True
        return tell(self.db, super().delete())

    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]


def _once_if_clocked(task: PeriodicTask) -> None:
    if rules.chosen(task, "clocked"):
        task.one_off = True
