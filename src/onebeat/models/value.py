"""What the four schedules have in common: a row is a value, and there is one row for each value.

A new object with a value that exists adopts the existing row. An edit into another row's value is refused, naming it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import IntegrityError, models, router, transaction
from django.db.models import signals

from onebeat.core.errors import RuleError
from onebeat.store import hints, unique, vendors

logger = logging.getLogger("onebeat")

S = TypeVar("S", bound="ScheduleValue")


class ScheduleQuerySet(models.QuerySet[S]):
    """Creation that cannot make a second row for a value, and changes that validate and are seen."""

    def get_or_create(self, defaults: Mapping[str, Any] | None = None, **kwargs: Any) -> tuple[S, bool]:
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
        defaults: Mapping[str, Any] | None = None,
        create_defaults: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> tuple[S, bool]:
        """The row for `kwargs`, edited to `defaults`; made with both if it is not there. As safe as `get_or_create`.

        If another row holds the edited value already, that row is the answer and nothing is edited.
        """
        before = self._value(kwargs, None)
        after = self._value(kwargs, defaults)
        if before is None or after is None:
            return super().update_or_create(defaults, create_defaults, **kwargs)
        if create_defaults is None:
            create_defaults = defaults
        if not defaults or before.value() == after.value():
            return self.get_or_create(create_defaults, **kwargs)
        self._for_write = True
        using = self.db

        def work() -> S | None:
            with transaction.atomic(using=using):
                rows = self.using(using).filter(**dict(zip(before.VALUE, before.value(), strict=True)))
                row = rows.select_for_update().order_by("pk").first()
                if row is None or unique.find(using, after, after.VALUE) is not None:
                    return None
                for name, value in zip(after.VALUE, after.value(), strict=True):
                    setattr(row, name, value)
                row.save(using=using)
                return row

        row = vendors.retrying(using, work)
        return (row, False) if row is not None else self.get_or_create(create_defaults, **kwargs)

    def bulk_create(self, objs: Iterable[S], *args: Any, **kwargs: Any) -> list[S]:
        """As Django's; each object gets the primary key of the one row that holds its value."""
        instances = list(objs)
        for instance in instances:
            instance.clean_value()
        self._for_write = True
        new = [one for one in instances if one.pk is None]
        if len(new) < len(instances):
            rest = [one for one in instances if one.pk is not None]
            super().bulk_create(rest, *args, **kwargs)
        unique.insert_or_adopt_many(self.db, new, self.model.VALUE)
        return instances

    def bulk_update(self, objs: Iterable[S], fields: Iterable[str], batch_size: int | None = None) -> int:
        """As Django's. Raises `ValidationError` for a value that is no schedule or that another row holds."""
        instances, names = list(objs), list(fields)
        for instance in instances:
            instance.clean_value()
        self._for_write = True
        with transaction.atomic(using=self.db), _named_collision():
            done = super().bulk_update(instances, names, batch_size)
            hints.changed(self.db, self.model.KIND, [one.pk for one in instances])
        return done

    def update(self, **kwargs: Any) -> int:
        """As Django's. Raises `ValidationError` for a value that is no schedule or that another row holds."""
        clean_values(self.model, kwargs)
        self._for_write = True
        with transaction.atomic(using=self.db), _named_collision():
            if kwargs.keys() & set(self.model.VALUE):
                hints.changed_where(self.db, self.model.KIND, self)
            return super().update(**kwargs)

    update.alters_data = True  # type: ignore[attr-defined]

    def _value(self, kwargs: dict[str, Any], defaults: Mapping[str, Any] | None) -> S | None:
        """The new object that these arguments describe; None if they are more than a value (a lookup, a key, a
        filter).
        """
        names = {**kwargs, **(defaults or {})}
        if self.query.where or not kwargs or not names.keys() <= set(self.model.VALUE):
            return None
        values = {name: value() if callable(value) else value for name, value in names.items()}
        instance = self.model(**values)
        instance.clean_value()
        return instance


class ScheduleValue(models.Model):
    """A schedule row. `VALUE` names the fields that are its value, `KIND` the task's field that points at it."""

    VALUE: ClassVar[Sequence[str]]
    KIND: ClassVar[str]

    class Meta:
        abstract = True

    def value(self) -> tuple[Any, ...]:
        """The fields that make this schedule what it is."""
        return tuple(getattr(self, name) for name in self.VALUE)

    def check_rule(self) -> None:
        """Raise `RuleError` if the fields, each valid, are no rule together."""

    def clean_value(self) -> None:
        """Bring the value to its canonical form. Raises `ValidationError` on each field that is wrong."""
        errors: dict[str, Any] = {}
        for name in self.VALUE:
            field = self._meta.get_field(name)
            try:
                setattr(self, name, field.clean(getattr(self, name), self))  # type: ignore[union-attr]
            except ValidationError as error:
                errors[name] = error.error_list
        if not errors:
            try:
                self.check_rule()
            except RuleError as error:
                errors[error.field if error.field in self.VALUE else self.VALUE[0]] = str(error)
        if errors:
            raise ValidationError(errors)

    def clean(self) -> None:
        """Part of `full_clean`: the rule as a whole."""
        super().clean()
        self.clean_value()

    def validate_unique(self, exclude: Any = None) -> None:
        """Part of `full_clean`: a new object may have a value that exists, since saving it adopts that row."""
        if not self._state.adding:
            super().validate_unique(exclude)

    def validate_constraints(self, exclude: Any = None) -> None:
        """As `validate_unique`."""
        if not self._state.adding:
            super().validate_constraints(exclude)

    def save(self, **kwargs: Any) -> None:
        """Save, or adopt the row that holds this value. Raises `ValidationError` for a value that is no schedule, and
        for an edit into a value that another row holds."""
        using = kwargs.get("using") or router.db_for_write(type(self), instance=self)
        names = kwargs.get("update_fields")
        if names is None or set(names) & set(self.VALUE):
            self.clean_value()
        if self._state.adding and self._is_plain():
            if self.pk is not None:
                twin = unique.find(using, self, self.VALUE)
                if twin is not None:
                    unique.adopt(using, self, twin)
            else:
                self._insert_or_adopt(using, always_signal=True)
                return
        with transaction.atomic(using=using), _named_collision():
            self._refuse_twin(using)
            super().save(**kwargs)
            hints.changed(using, self.KIND, [self.pk])
        self._warn_shared(using)

    def _insert_or_adopt(self, using: str, *, always_signal: bool) -> bool:
        """Adopt the row of this value or insert it, with Django's signals; returns whether it was inserted."""
        key = None
        if not always_signal and not vendors.connection(using).in_atomic_block:
            key = vendors.retrying(using, lambda: unique.find(using, self, self.VALUE))
        if key is not None:
            unique.adopt(using, self, key)
            return False
        sender, extra = type(self), {"raw": False, "using": using, "update_fields": None}
        signals.pre_save.send(sender=sender, instance=self, **extra)
        created = unique.insert_or_adopt(using, self, self.VALUE)
        if created or always_signal:
            signals.post_save.send(sender=sender, instance=self, created=created, **extra)
        return created

    def _is_plain(self) -> bool:
        """Whether this is a row of its own table alone, and not the parent part of somebody's child model."""
        return not self._meta.parents

    def _refuse_twin(self, using: str) -> None:
        rows = type(self)._base_manager.using(using).exclude(pk=self.pk)
        twin = rows.filter(**dict(zip(self.VALUE, self.value(), strict=True))).order_by("pk").first()
        if twin is not None:
            raise ValidationError(_taken(f"{self._meta.verbose_name} {twin.pk} ({twin})"), code="unique")

    def _warn_shared(self, using: str) -> None:
        tasks = self.periodictask_set.using(using).order_by("name")  # type: ignore[attr-defined]
        names = list(tasks.values_list("name", flat=True)[:11])
        if len(names) > 1:
            more = " and more" if len(names) > 10 else ""
            logger.warning(
                "%s %s was edited in place; it is shared by the tasks %s%s",
                self._meta.verbose_name, self.pk, ", ".join(names[:10]), more,
            )  # fmt: skip


def clean_values(model: type[models.Model], values: dict[str, Any]) -> None:
    """Validate the plain values of an `update()` on their fields. Raises `ValidationError`."""
    errors: dict[str, Any] = {}
    for name, value in values.items():
        try:
            field = model._meta.get_field(name)
        except FieldDoesNotExist:
            continue
        if hasattr(value, "resolve_expression") or field.is_relation:
            continue
        try:
            values[name] = field.clean(value, None)  # type: ignore[union-attr]
        except ValidationError as error:
            errors[name] = error.error_list
    if errors:
        raise ValidationError(errors)


def _taken(row: str) -> str:
    return f"{row} has this value already. Use that row: a schedule is shared by every task that runs on it."


class _named_collision:
    """Turns the unique constraint's error for an edit into a ValidationError."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, IntegrityError):
            raise ValidationError(_taken("Another row"), code="unique") from error
