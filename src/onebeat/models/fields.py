"""The fields of the people's tables: quiet in migrations, and one canonical value for each meaning.

Migrations describe the database alone. So a field here deconstructs to a plain Django field without what the database
never sees (texts, choices, validators, what Django does on delete); a change in those never asks for a migration.

A value becomes canonical on its way into a row or a lookup. Without that, uniqueness by value would hold for texts and
not for what they mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from datetime import datetime, tzinfo
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast
from zoneinfo import ZoneInfo, available_timezones

from django import forms
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.query_utils import DeferredAttribute
from django.utils import timezone

from onebeat.core.recurrence import canonical_field, zone
from onebeat.db import expressions
from onebeat.db.schema import LABEL
from onebeat.errors import InvalidSchedule

M = TypeVar("M", bound=models.Model)
#: What `Field.deconstruct` gives: the attribute's name, the class's path, and the arguments to make the field with.
Deconstructed = tuple[str, str, Sequence[Any], dict[str, Any]]

#: What the database never sees.
UNSEEN = ("help_text", "verbose_name", "choices", "validators")


class Quiet:
    """Mixed into a field: migrations see it without what the database never sees. A copy is of the same class."""

    def __copy__(self) -> Self:
        copied: Self = super().__copy__()  # type: ignore[misc]
        copied.__class__ = type(self)  # Django asks the field for its class
        return copied

    def deconstruct(self) -> Deconstructed:
        name, path, args, kwargs = super().deconstruct()  # type: ignore[misc]
        kwargs = {key: value for key, value in kwargs.items() if key not in UNSEEN}
        if "on_delete" in kwargs and kwargs["on_delete"].__module__ != models.CASCADE.__module__:  # ours
            kwargs["on_delete"] = models.CASCADE
        return name, path, args, kwargs


@lru_cache
def _quiet(kind: type) -> type:
    return type(kind.__name__, (Quiet, kind), {"__class__": property(lambda field: kind)})


def quiet(model: type[M]) -> type[M]:
    """A class decorator: makes every field of the model `Quiet`."""
    for field in model._meta.local_fields:
        if field.auto_created:
            continue
        field.validators.append(RowRule(field.name))
        if not issubclass(type(field), Quiet):
            field.__class__ = _quiet(type(field))  # type: ignore[arg-type]
    return model


class RowRule:
    """A validator of one field that asks what the rules of the whole row say of it, for REST serializers, which never
    call `full_clean`. They hand themselves over to a validator with `requires_context`.

    Only of fields that were posted, by what was posted: a view may add others when it saves. A serializer within
    another does not know its data; there each field is looked at by itself.
    """

    requires_context = True

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, value: object, serializer_field: object = None) -> None:
        """Raises ValidationError. Does nothing for Django itself, whose ways go by `full_clean` and `save`."""
        serializer = getattr(serializer_field, "parent", None)
        model: Any = getattr(getattr(serializer, "Meta", None), "model", None)
        if not hasattr(model, "check_row"):
            return
        posted = getattr(serializer, "initial_data", None)
        row = _with_posted(model, getattr(serializer, "instance", None), posted if isinstance(posted, Mapping) else {})
        setattr(row, self.name, value)
        try:
            model._meta.get_field(self.name).run_validators(value)
        except ValidationError:
            return  # which the serializer asks too
        try:
            row.check_row()
        except ValidationError as error:
            if self.name in error.error_dict:
                raise ValidationError(error.error_dict[self.name]) from error


def _with_posted(model: Any, instance: object, posted: Mapping[str, object]) -> Any:
    """An object as the posted values would leave it; they may be spelt as nobody reads them yet."""
    row = copy(instance) if isinstance(instance, model) else model()
    for field in model._meta.concrete_fields:
        if field.name in posted:
            given = None if field.null and posted[field.name] == "" else posted[field.name]
            with suppress(ValidationError):
                given = field.to_python(given)
            setattr(row, field.attname, given)
    return row


if TYPE_CHECKING:
    CronText = models.CharField[str | int | Iterable[int | str], str]
    JSONText = models.TextField[Any, str]
    WholeNumber = models.IntegerField[float | str, int]
    Word = models.CharField[str, str]
    Degrees = models.DecimalField[Decimal | float | str, Decimal]
    ClockTime = models.DateTimeField[datetime | str, datetime]
    ZoneName = models.Field[tzinfo | str, ZoneInfo]
else:
    CronText = Word = models.CharField
    JSONText, WholeNumber, Degrees = models.TextField, models.IntegerField, models.DecimalField
    ClockTime, ZoneName = models.DateTimeField, models.Field


class Canonical(Quiet):
    """Mixed into a field: what `to_python` makes of a value is stored, looked up and left on the instance.

    To those who ask for its class it is Django's own of the same column, which it can stand in for everywhere:
    migrations name that one, and libraries that make objects or serializers find it in their tables.
    """

    __class__ = property(lambda field: getattr(models, field.get_internal_type()))

    def pre_save(self: Any, model_instance: models.Model, add: bool) -> Any:
        """The value to store, which the instance then has too. Raises ValidationError as `to_python` does."""
        value = getattr(model_instance, self.attname)
        if value is None or hasattr(value, "resolve_expression"):
            return value
        value = self.to_python(value)
        setattr(model_instance, self.attname, value)
        return value


def invalid(error: InvalidSchedule) -> ValidationError:
    """The same fault in Django's words, for forms and `full_clean`."""
    return ValidationError(str(error), code="invalid")


class CronField(Canonical, CronText):
    """One crontab field: text, a number or several numbers in Python, canonical text in the table.

    It is named as the grammar names it: `minute`, `hour`, `day_of_month`, `month_of_year` or `day_of_week`.
    """

    def to_python(self, value: object) -> object:
        """Canonical text. A text that does not parse is kept, so that old rows stay readable and editable.

        Raises ValidationError for what is neither text nor a valid number or collection of numbers.
        """
        if value is None:
            return None
        try:
            return canonical_field(self.name, value)
        except InvalidSchedule as error:
            if isinstance(value, str):
                return value
            raise invalid(error) from error

    def validate(self, value: object, model_instance: models.Model | None) -> None:
        """Raises ValidationError, naming the field and the token, if the text is not in the grammar."""
        super().validate(value, model_instance)
        try:
            canonical_field(self.name, value)
        except InvalidSchedule as error:
            raise invalid(error) from error


class JSONTextField(Canonical, JSONText):
    """JSON as text, as the old column holds it. A dict or a list in Python becomes its text."""

    def to_python(self, value: object) -> object:
        """The text. Raises ValidationError, naming the value's type, for what JSON cannot hold."""
        if isinstance(value, dict | list | tuple):
            try:
                return json.dumps(value, allow_nan=False)
            except (TypeError, ValueError, RecursionError) as error:
                raise ValidationError(f"JSON cannot hold this: {error}", code="invalid") from error
        return super().to_python(value)


class ExactField(Word):
    """A text that is the same as another only if every byte is, on every database."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        return expressions.exact_type(connection, self.max_length or 0) or super().db_type(connection)

    def from_db_value(self, value: object, expression: object, connection: BaseDatabaseWrapper) -> object:
        """The text: a column of bytes gives bytes."""
        return value.decode() if isinstance(value, bytes) else value


class WholeField(Canonical, WholeNumber):
    """A whole number. Django's own field makes 1 of 1.5."""

    def to_python(self, value: object) -> object:
        """The number. Raises ValidationError if it has a fraction or is none."""
        number = super().to_python(value)
        if isinstance(value, float | Decimal) and number != value:
            raise ValidationError(f"A whole number is needed, not {value}.", code="invalid")
        return number


class WordField(Canonical, Word):
    """A word from a short list (`days`, `sunset`), in small letters and without space around it."""

    def to_python(self, value: object) -> object:
        """The word, stripped and in small letters."""
        value = super().to_python(value)
        return value.strip().lower() if isinstance(value, str) else value


class CoordinateField(Canonical, Degrees):
    """Degrees with as many decimal places as the column has.

    PostgreSQL compares a finer number with the rounded one it stored and finds them different.
    """

    def to_python(self, value: object) -> object:
        """The number, rounded half to even, never minus zero. Raises ValidationError if it is none."""
        number = super().to_python(value)
        if number is None or number.adjusted() >= self.max_digits - self.decimal_places:
            return number  # No room for it in the column: for the validators or the database to refuse.
        number = number.quantize(Decimal(1).scaleb(-self.decimal_places), rounding=ROUND_HALF_EVEN)
        return number if number else number.copy_abs()


class ClockField(Canonical, ClockTime):
    """An instant. Equal instants are equal whatever zone they are written in, also when USE_TZ is off.

    With USE_TZ off, SQLite and MySQL refuse aware values; here they are stored as wall clock of TIME_ZONE,
    like every other time in such a database. PostgreSQL takes them as they are.
    """

    def get_db_prep_value(self, value: object, connection: BaseDatabaseWrapper, prepared: bool = False) -> object:
        """The value for the column; an aware one becomes local wall clock where the database takes nothing else."""
        if not prepared:
            value = self.get_prep_value(value)
        local = not settings.USE_TZ and not connection.features.supports_timezones
        if local and isinstance(value, datetime) and timezone.is_aware(value):
            value = timezone.make_naive(value, timezone.get_default_timezone())
        return super().get_db_prep_value(value, connection, prepared=True)


def default_zone() -> str:
    """The zone of a crontab that names none: the Celery app's timezone setting, else UTC.

    django-celery-beat's rule; TIME_ZONE plays no part in it. The setting is `CELERY_TIMEZONE`, or
    `<NAMESPACE>_TIMEZONE` where the app reads its settings under another namespace. What is not the name of a
    zone counts as UTC.
    """
    config: Any = apps.get_app_config(LABEL)
    name = config.celery_timezone()
    try:
        return "UTC" if name is None else zone(name).key
    except InvalidSchedule:
        return "UTC"


@lru_cache(maxsize=1)
def zone_choices() -> list[tuple[str, str]]:
    """Every zone of this machine's tzdata, for a form's select.

    The empty one comes first: a browser takes the first one for a row whose zone is not in the list.
    """
    return [("", "---------"), *((name, name) for name in sorted(available_timezones()))]


class ZoneAttribute(DeferredAttribute):
    """Turns a zone's name into the zone when it is assigned; what names none is left for validation."""

    def __set__(self, instance: models.Model, value: object) -> None:
        instance.__dict__[self.field.attname] = known_zone(value)


def known_zone(value: Any) -> Any:
    """The zone, or the value itself if it names none: one bad row must not make a whole query fail."""
    try:
        return value if value is None else zone(value)
    except InvalidSchedule:
        return value


class ZoneField(Canonical, ZoneName):
    """An IANA time zone: a `ZoneInfo` in Python, its name in the table. Takes names in any letter case."""

    descriptor_class = ZoneAttribute

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # 63 is the old column's width.
        kwargs.setdefault("max_length", 63)
        super().__init__(*args, **kwargs)

    def get_internal_type(self) -> str:
        """Stored as a CharField. Not a subclass of one: its validators measure text."""
        return "CharField"

    def to_python(self, value: Any) -> ZoneInfo | None:
        """The zone. Raises ValidationError if there is none of that name."""
        try:
            return None if value is None else zone(value)
        except InvalidSchedule as error:
            raise invalid(error) from error

    def from_db_value(self, value: object, expression: object, connection: BaseDatabaseWrapper) -> object:
        """The zone, or the text as it stands in the row if it names none."""
        return known_zone(value)

    def get_prep_value(self, value: object) -> str | None:
        """The zone's name. Raises ValidationError as `to_python` does."""
        found = self.to_python(super().get_prep_value(value))
        return None if found is None else found.key

    def value_to_string(self, obj: models.Model) -> str:
        """The name, for serializers and fixtures."""
        return str(self.value_from_object(obj))

    def formfield(self, **kwargs: Any) -> forms.Field:
        """A select of every zone."""
        kwargs = {"form_class": forms.TypedChoiceField, "choices": zone_choices, "coerce": zone, **kwargs}
        return cast(forms.Field, super().formfield(**kwargs))
