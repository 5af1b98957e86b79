"""What changes of people's rows go through: validation, and for a schedule that is edited in place, who else is hit."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.core.exceptions import NON_FIELD_ERRORS, FieldDoesNotExist, ValidationError
from django.db import models

logger = logging.getLogger("onebeat")

M = TypeVar("M", bound=models.Model)

#: The order in which Django's `save` takes them by position, up to Django 5.2.
SAVE_ARGUMENTS = ("force_insert", "force_update", "using", "update_fields")


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


def clean_values(model: type[models.Model], values: dict[str, object]) -> None:
    """Validate the plain values of an `update()` on their fields. Raises `ValidationError`."""
    errors: dict[str, object] = {}
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
