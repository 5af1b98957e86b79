"""What the four schedules have in common: a row is a value, and there is one row for each value.

A new object with a value that exists adopts the existing row. An edit into another row's value is refused, naming it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, router, transaction
from django.db.models import signals

from onebeat.core.recurrence import EPOCH, Recurrence, rule_of
from onebeat.db import transactions
from onebeat.db.schema import LABEL
from onebeat.errors import InvalidSchedule
from onebeat.models import change_hints, unique_rows
from onebeat.models.deletion import naming_tasks, record_hints
from onebeat.models.edits import SAVE_ARGUMENTS, clean_values, for_form, plain
from onebeat.models.fixtures import load

logger = logging.getLogger("onebeat")

S = TypeVar("S", bound="ScheduleValue")


class ScheduleQuerySet(models.QuerySet[S]):
    """Creation that cannot make a second row for a value, and changes that validate and are seen."""

    def get_or_create(self, defaults: Mapping[str, object] | None = None, **kwargs: object) -> tuple[S, bool]:
        """The one row for a value, made if need be: `(object, created)`, with `created` True for exactly one caller.

        The value is `kwargs` and `defaults` together, other fields at their defaults. Any number of processes may call
        this with the same value, in or out of a transaction, and get the same row and no error for losing.

        Inside your own transaction the database's retryable errors reach you, for you to run the transaction again:
        PostgreSQL under REPEATABLE READ or SERIALIZABLE raises `OperationalError` with SQLSTATE 40001 when the row was
        committed after your snapshot, because then no row can be returned. At the default isolation it does not happen.
        Raises `ValidationError` for a value that is no schedule.
        """
        instance = self._value(kwargs, defaults)
        if instance is None:
            return super().get_or_create(defaults, **kwargs)
        self._for_write = True
        return instance, instance._insert_or_adopt(self.db, always_signal=False)

    def update_or_create(
        self,
        defaults: Mapping[str, object] | None = None,
        create_defaults: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> tuple[S, bool]:
        """The row for `kwargs`, edited to `defaults`; made with both if it is not there. As safe as `get_or_create`.

        If another row holds the edited value already, that row is the answer and nothing is edited.
        """
        after = self._value(kwargs, defaults)
        if after is None:
            return super().update_or_create(defaults, create_defaults, **kwargs)
        self._for_write = True
        using = self.db
        before = self._value(kwargs, None)
        if before is not None and before.value() != after.value():
            row = transactions.retrying(using, lambda: self._edited(using, before, after))
            if row is not None:
                return row, False
        elif before is not None and (key := unique_rows.look(using, before, before.VALUE)) is not None:
            unique_rows.adopt(using, before, key)
            return before, False
        return self.get_or_create(defaults if create_defaults is None else create_defaults, **kwargs)

    def _edited(self, using: str, before: S, after: S) -> S | None:
        """The row of one value after it was given another; None if there is none, or if another row holds that."""
        with transactions.writing(using):
            rows = self.using(using).filter(**dict(zip(before.VALUE, before.value(), strict=True)))
            row = rows.select_for_update().order_by("pk").first()
            if row is None or after.twin(using) is not None:
                return None
            for name, value in zip(after.VALUE, after.value(), strict=True):
                setattr(row, name, value)
            try:  # somebody may have inserted it since the look
                row.save(using=using)
            except IntegrityError:
                return None
            except ValidationError as error:
                if getattr(error, "code", "") != "unique":
                    raise
                return None
            return row

    def bulk_create(self, objs: Iterable[S], *args: Any, **kwargs: Any) -> list[S]:
        """Insert the values that are new. Each object gets the primary key of the one row that holds its value."""
        instances = list(objs)
        for instance in instances:
            instance.clean_value()
        self._for_write = True
        for instance in instances:
            if instance.pk is not None and (twin := instance.twin(self.db)) is not None:
                unique_rows.adopt(self.db, instance, twin.pk)
        super().bulk_create([one for one in instances if one.pk is not None and one._state.adding], *args, **kwargs)
        unique_rows.insert_or_adopt_many(self.db, [one for one in instances if one.pk is None], self.model.VALUE)
        return instances

    def bulk_update(self, objs: Iterable[S], fields: Iterable[str], batch_size: int | None = None) -> int:
        """Update these fields of the rows. Raises `ValidationError` for a value that is no schedule or that another row
        holds.
        """
        names = list(fields)
        instances = [one for one in objs if is_child(self.model) or not one.keeps_reading()]
        for instance in instances:
            instance.clean_value()
        self._for_write = True
        with _edit(self.model, self.db, [one.pk for one in instances], lambda: instances):
            return plain(self).bulk_update(instances, names, batch_size)

    def update(self, **kwargs: object) -> int:
        """Update the rows. Raises `ValidationError` for a value that is no schedule or that another row holds."""
        clean_values(self.model, kwargs)
        self._for_write = True
        if not kwargs.keys() & set(self.model.VALUE):
            return super().update(**kwargs)
        values = {name: value for name, value in kwargs.items() if not hasattr(value, "resolve_expression")}

        def edited() -> Iterator[S]:
            for row in self.model._base_manager.using(self.db).filter(pk__in=keys):
                for name, value in values.items():
                    setattr(row, name, value)
                yield row

        with transactions.writing(self.db):
            keys = list(self.order_by().values_list("pk", flat=True))
            with _edit(self.model, self.db, keys, edited):
                return super().update(**kwargs)

    update.alters_data = True  # type: ignore[attr-defined]

    def delete(self) -> tuple[int, dict[str, int]]:
        """Delete the rows. Raises `ProtectedError`, naming the tasks, if several use one of the schedules."""
        self._for_write = True
        with naming_tasks(self.model):
            return record_hints(self.db, super().delete())

    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]

    def _value(self, kwargs: dict[str, object], defaults: Mapping[str, object] | None) -> S | None:
        """The new object that these arguments describe; None if they are no whole value or more than one (a lookup, a
        key, a filter, a field of somebody's child model): then it is Django's own way.
        """
        names = {**kwargs, **(defaults or {})}
        if self.query.where or not kwargs or not names.keys() <= set(self.model.VALUE) or is_child(self.model):
            return None
        fields: list[Any] = [self.model._meta.get_field(name) for name in self.model.VALUE]
        if not all(field.name in names or field.has_default() for field in fields):
            return None
        values = {name: value() if callable(value) else value for name, value in names.items()}
        instance = self.model(**values)
        instance.clean_value()
        return instance


def is_child(model: type[models.Model]) -> bool:
    """Whether this is somebody's child model, which has the schedule's columns in another table. A proxy is none."""
    return bool(model._meta.concrete_model._meta.parents)  # type: ignore[union-attr]


class ScheduleValue(models.Model):
    """A schedule row. `VALUE` names the fields that are its value, `KIND` the task's field that points at it."""

    VALUE: ClassVar[Sequence[str]]
    KIND: ClassVar[str]

    class Meta:
        abstract = True

    def value(self) -> tuple[Any, ...]:
        """The fields that make this schedule what it is."""
        return tuple(getattr(self, name) for name in self.VALUE)

    @property
    def schedule(self) -> Any:
        """As Celery's own object, for code that reads it. Raises Celery's ParseException for what it cannot express.

        onebeat itself plans from the row, and this package knows no Celery: the app's config makes the object.
        """
        config: Any = apps.get_app_config(LABEL)
        return config.celery_schedule(self.KIND, *self.value())

    def recurrence(self, anchor: datetime = EPOCH) -> Recurrence:
        """The rule of this row. `anchor` is where the grid of an interval begins; the other kinds do not use it.

        Raises `InvalidSchedule` if the row holds no rule.
        """
        return rule_of(self.KIND, self.value(), anchor)

    def check_rule(self) -> None:
        """Raise `InvalidSchedule` if the fields, each valid, are no rule together."""
        self.recurrence()

    def keeps_reading(self) -> bool:
        """Whether this is a row that was taken over, unchanged, whose meaning is not what its text says."""
        return False

    def clean_value(self) -> None:
        """Bring the value to its canonical form. Raises `ValidationError` on each field that is wrong."""
        errors: dict[str, object] = {}
        for name in self.VALUE:
            field = self._meta.get_field(name)
            if hasattr(getattr(self, name), "resolve_expression"):
                continue  # the database will compute it; the row is looked at afterwards
            try:
                setattr(self, name, field.clean(getattr(self, name), self))  # type: ignore[union-attr]
            except ValidationError as error:
                errors[name] = error.error_list
        if not errors and not any(hasattr(value, "resolve_expression") for value in self.value()):
            try:
                self.check_rule()
            except InvalidSchedule as error:
                errors[error.field if error.field in self.VALUE else self.VALUE[0]] = str(error)
        if errors:
            raise ValidationError(errors)

    def check_row(self) -> None:
        """What `save` would refuse, for `fields.RowRule`. Raises `ValidationError` on each field that is wrong."""
        if not self.keeps_reading():
            self.clean_value()
        using = self._state.db or router.db_for_write(type(self), instance=self)
        if not self._state.adding and self._stored(using) != self.value() and (twin := self.twin(using)):
            raise ValidationError(dict.fromkeys(self.VALUE, _taken(twin)))

    def clean_fields(self, exclude: Any = None) -> None:
        """Part of `full_clean`: the rule as a whole too."""
        if self.keeps_reading():  # tidying the text would end it
            super().clean_fields({*(exclude or ()), *self.VALUE})
            return
        super().clean_fields(exclude)
        with for_form(self, exclude):
            self.clean_value()

    def validate_unique(self, exclude: Any = None) -> None:
        """Part of `full_clean`: a new object may have a value that exists, since saving it adopts that row."""
        if not self._state.adding:
            super().validate_unique(exclude)

    def validate_constraints(self, exclude: Any = None) -> None:
        """As `validate_unique`; a row that keeps its value passes, though old duplicates of it are not merged yet."""
        if self._state.adding:
            return
        try:
            super().validate_constraints(exclude)
        except ValidationError:
            if self._stored(self._state.db or router.db_for_write(type(self), instance=self)) != self.value():
                raise

    def unique_error_message(self, model_class: Any, unique_check: Any) -> ValidationError:
        """The error for values that are taken; for the value of a schedule, it names the row that holds it."""
        if set(unique_check) == set(self.VALUE):
            return _taken(self.twin(self._state.db or router.db_for_write(type(self), instance=self)))
        return super().unique_error_message(model_class, unique_check)

    def twin(self, using: str) -> Any:
        """Another row that holds this value; None if there is none."""
        rows = type(self)._base_manager.using(using).filter(**dict(zip(self.VALUE, self.value(), strict=True)))
        return (rows if self.pk is None else rows.exclude(pk=self.pk)).order_by("pk").first()

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save, or adopt the row that holds this value. Raises `ValidationError` as `check_row` does."""
        kwargs |= dict(zip(SAVE_ARGUMENTS, args, strict=False))
        using = kwargs.get("using") or router.db_for_write(type(self), instance=self)
        names = kwargs.get("update_fields")
        if names is not None and not set(names) & set(self.VALUE):
            super().save(**kwargs)
            return
        if not self.keeps_reading():
            self.clean_value()
        if is_child(type(self)):
            with transactions.writing(using):
                super().save(**kwargs)
                change_hints.changed(using, self.KIND, [self.pk])
        elif self.pk is None:
            self._insert_or_adopt(using, always_signal=True)
        elif self._state.adding:
            self._insert_with_key(using, kwargs)
        elif (stored := self._stored(using)) == self.value():
            # Nothing to write, and so no lock that would make another transaction wait for this one.
            self._state.db = using
            self._signal(signals.pre_save, using, update_fields=names)
            self._signal(signals.post_save, using, update_fields=names, created=False)
        elif stored is None:
            super().save(**kwargs)
        else:
            with _edit(type(self), using, [self.pk], lambda: [self]):
                super().save(**kwargs)

    def delete(self, using: Any = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:
        """Delete the row. Raises `ProtectedError`, naming the tasks, if several use it."""
        using = using or router.db_for_write(type(self), instance=self)
        with naming_tasks(type(self)):
            return record_hints(using, super().delete(using, keep_parents))

    def _save_table(
        self,
        raw: bool = False,
        cls: object = None,
        force_insert: object = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: object = None,
    ) -> bool:
        """Part of Django's saving, raw for a fixture, which does not come through `save`."""
        using = using or router.db_for_write(type(self), instance=self)
        if raw and not is_child(type(self)) and load(self, self.KIND, self.VALUE, using):
            return True
        done: bool = super()._save_table(raw, cls, force_insert, force_update, using, update_fields)  # type: ignore[misc]
        return done

    def _stored(self, using: str) -> tuple[object, ...] | None:
        return type(self)._base_manager.using(using).filter(pk=self.pk).values_list(*self.VALUE).first()

    def _signal(self, signal: signals.ModelSignal, using: str, **extra: object) -> None:
        signal.send(sender=type(self), instance=self, raw=False, using=using, **extra)

    def _insert_or_adopt(self, using: str, *, always_signal: bool) -> bool:
        """Adopt the row of this value or insert it, with Django's signals; returns whether it was inserted."""
        key, created = unique_rows.look(using, self, self.VALUE), False
        if key is None or always_signal:
            self._signal(signals.pre_save, using, update_fields=None)
        if key is None:
            created = unique_rows.insert_or_adopt(using, self, self.VALUE)
        else:
            unique_rows.adopt(using, self, key)
        if created or always_signal:
            self._signal(signals.post_save, using, update_fields=None, created=created)
        return created

    def _insert_with_key(self, using: str, kwargs: dict[str, Any]) -> None:
        try:
            twin = self.twin(using)
            if twin is None:
                with transaction.atomic(using=using):
                    super().save(**kwargs)
        except IntegrityError:
            twin = self.twin(using)
            if twin is None:
                raise
        if twin is not None:
            unique_rows.adopt(using, self, twin.pk)


@contextmanager
def _edit(
    model: type[ScheduleValue], using: str, keys: Sequence[object], edited: Callable[[], Iterable[ScheduleValue]]
) -> Iterator[None]:
    """A change of these rows' values: it must leave valid rules, the engine sees it, and it is logged if tasks share
    them.

    `edited` gives the rows as they were to be, to find which other row stands in the way.
    """
    rows = model._base_manager.using(using).filter(pk__in=keys)
    try:
        with transactions.writing(using):
            before = {row.pk: row.value() for row in rows}
            yield
            changed = [row for row in rows.all() if row.value() != before.get(row.pk)]
            for row in changed:
                row.clean_value()
            change_hints.changed(using, model.KIND, [row.pk for row in changed])
    except IntegrityError as error:
        twin = next(filter(None, (row.twin(using) for row in edited())), None)
        if twin is None and len(keys) < 2:
            raise
        raise _taken(twin) from error
    for row in changed:
        _warn_shared(row, using)


def _warn_shared(row: ScheduleValue, using: str) -> None:
    tasks = row.periodictask_set.using(using).order_by("name")  # type: ignore[attr-defined]
    names = list(tasks.values_list("name", flat=True)[:11])
    if len(names) > 1:
        more = " and more" if len(names) > 10 else ""
        logger.warning(
            "%s %s was edited in place; it is shared by the tasks %s%s",
            row._meta.verbose_name, row.pk, ", ".join(names[:10]), more,
        )  # fmt: skip


def _taken(twin: ScheduleValue | None) -> ValidationError:
    """The error for an edit into the value of another row, which it names if it can be seen."""
    row = "Another row" if twin is None else f"{twin._meta.verbose_name} {twin.pk} ({twin})"
    return ValidationError(
        f"{row} has this value already. Use that row: a schedule is shared by every task that runs on it.",
        code="unique",
    )
