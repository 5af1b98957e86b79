"""The field for the name of a registered task, from which other forms are built as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from celery import current_app
from django import forms

__all__ = ["TaskChoiceField", "TaskSelectWidget"]


class _TaskChoices:
    """The registered tasks as choices, looked up each time: tasks are registered late."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def __iter__(self) -> Iterator[tuple[str, str]]:
        self.app.loader.import_default_modules()
        yield "", ""
        yield from ((name, name) for name in sorted(self.app.tasks) if not name.startswith("celery."))


class TaskSelectWidget(forms.Select):
    """A select of the tasks that the Celery app has registered."""

    celery_app = current_app

    def tasks_as_choices(self) -> list[tuple[str, str]]:
        """The choices, the empty one first."""
        return list(_TaskChoices(self.celery_app))

    @property
    def choices(self) -> list[tuple[str, str]]:
        """The registered tasks, looked up each time."""
        return self.tasks_as_choices()

    @choices.setter
    def choices(self, value: object) -> None:
        """What a field hands over has no say."""


class TaskChoiceField(forms.ChoiceField):
    """A field for the name of a task; a name that this process has not registered is as good."""

    widget = TaskSelectWidget

    def valid_value(self, value: object) -> bool:
        """Every name is a choice."""
        return True
