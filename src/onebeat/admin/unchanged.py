"""A form that keeps what is stored where nobody has changed anything.

An HTML form loses a part of what it shows: microseconds, spaces around a text, which of two equal wall-clock times in
autumn was meant, a value that is no choice any more. Django saves what came back. Here a field whose data are what the
page showed keeps its stored value, whatever the field would make of them, and a form without a change is not validated.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django import forms

if TYPE_CHECKING:
    AnyForm = forms.ModelForm[Any]
else:
    AnyForm = forms.BaseModelForm


class StoredUnlessChanged(AnyForm):
    """Mixed into a model form. A form for a new object is as any other."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offer_stored()

    def offer_stored(self) -> None:
        """Make a stored value that is no choice one: of a select without it a browser sends the first option."""
        for name, field in self.fields.items():
            if isinstance(field, forms.ChoiceField) and not self._adding:
                value = str(self.get_initial_for_field(field, name) or "")
                if value and not field.valid_value(value):
                    field.choices = [*list(field.choices), (value, value)]  # type: ignore[arg-type]

    @cached_property
    def changed_data(self) -> list[str]:
        """The names of the fields whose data are not what the page showed."""
        changed = super().changed_data
        return changed if self._adding else [name for name in changed if not _as_shown(self[name])]

    @property
    def _adding(self) -> bool:
        return bool(self.instance._state.adding)

    def clean(self) -> dict[str, Any]:
        """Put the stored values back."""
        cleaned: dict[str, object] = super().clean() or self.cleaned_data
        if not self._adding:
            for name in self.fields.keys() - set(self.changed_data):
                self.errors.pop(name, None)
                cleaned[name] = getattr(self.instance, name, self.get_initial_for_field(self.fields[name], name))
        return cleaned

    def _post_clean(self) -> None:
        # Django's last step, which fills the object in and validates it.
        if self._adding or self.has_changed():
            super()._post_clean()  # type: ignore[misc]


def _as_shown(bound: forms.BoundField) -> bool:
    """Whether a text came back letter by letter; browsers send each line's end in a way of their own."""
    return isinstance(bound.data, str) and _text(bound.data) == _text(bound.field.prepare_value(bound.initial))


def _text(value: object) -> str:
    return "" if value is None else str(value).replace("\r\n", "\n")
