"""What changes of people's rows go through: validation, and for a schedule that is edited in place, who else is hit."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from django.core.exceptions import NON_FIELD_ERRORS, FieldDoesNotExist, ValidationError
from django.db import IntegrityError, models

from onebeat.store import hints, vendors

if TYPE_CHECKING:
    from onebeat.models.value import ScheduleValue

logger = logging.getLogger("onebeat")

M = TypeVar("M", bound=models.Model)

#: The order in which Django's `save` takes them by position, up to Django 5.2.
SAVE_ARGUMENTS = ("force_insert", "force_update", "using", "update_fields")


@contextmanager
def edit(
    model: type[ScheduleValue], using: str, keys: Sequence[Any], wanted: Callable[[], Iterable[ScheduleValue]]
) -> Iterator[None]:
    """A change of these rows' values: it must leave valid rules, the engine sees it, and it is logged if tasks share
    them.

    `wanted` gives the rows as they were to be, to find which other row stands in the way.
    """
    rows = model._base_manager.using(using).filter(pk__in=keys)
    try:
        with vendors.writing(using):
            before = {row.pk: row.value() for row in rows}
            yield
            changed = [row for row in rows.all() if row.value() != before.get(row.pk)]
            for row in changed:
                row.clean_value()
            hints.changed(using, model.KIND, [row.pk for row in changed])
    except IntegrityError as error:
        twin = next(filter(None, (row.twin(using) for row in wanted())), None)
        if twin is None and len(keys) < 2:
            raise
        raise taken(twin) from error
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


@contextmanager
def for_form(instance: models.Model, exclude: Collection[str] | None) -> Iterator[None]:
    """In `full_clean`: what is wrong with an excluded field is about the whole, since a form takes no error on a field
    that it does not have. That such a field is empty is the form's to say.
    """
    try:
        yield
    except ValidationError as error:
        errors: defaultdict[str, list[ValidationError]] = defaultdict(list)
        for name, found in error.error_dict.items():
            if name not in (exclude or ()):
                errors[name] += found
            elif getattr(instance, name) not in (None, "") or instance._meta.get_field(name).null:
                errors[NON_FIELD_ERRORS] += found
        if errors:
            raise ValidationError(errors) from error


def plain(rows: models.QuerySet[M]) -> models.QuerySet[M]:
    """The same rows as Django's own queryset, whose `bulk_update` does not come back to our `update`."""
    return models.QuerySet(rows.model, rows.query.chain(), rows.db)


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


def taken(twin: ScheduleValue | None) -> ValidationError:
    """The error for an edit into the value of another row, which it names if it can be seen."""
    row = "Another row" if twin is None else f"{twin._meta.verbose_name} {twin.pk} ({twin})"
    return ValidationError(
        f"{row} has this value already. Use that row: a schedule is shared by every task that runs on it.",
        code="unique",
    )
