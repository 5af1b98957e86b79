"""Child models of `PeriodicTask` with rules of their own for the choice of schedule."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from onebeat.models import PeriodicTask
from tests.engine.kit import cron, every

pytestmark = pytest.mark.django_db


class OwnKind(PeriodicTask):
    """It has a kind of schedule of which django-celery-beat knows nothing."""

    class Meta:
        proxy = True
        app_label = "elsewhere"

    def validate_unique(self, *args: Any, **kwargs: Any) -> None:
        if "own kind" not in self.description:
            super().validate_unique(*args, **kwargs)


def test_a_child_model_decides_about_its_own_kind_of_schedule() -> None:
    task = OwnKind(name="own", task="a.b", description="own kind")
    task.full_clean()
    task.save()
    task.enabled = False
    task.save(update_fields=["enabled"])
    OwnKind.objects.create(name="plain", task="a.b", interval=every(60))
    with pytest.raises(ValidationError) as caught:
        OwnKind(name="none", task="a.b").save()
    assert list(caught.value.message_dict) == ["interval"]
    assert set(PeriodicTask.objects.values_list("name", flat=True)) == {"own", "plain"}


@pytest.mark.parametrize("check", ["validate_unique", "full_clean", "save"])
def test_the_choice_of_schedule_is_refused_once_by_each_check(check: str) -> None:
    with pytest.raises(ValidationError) as caught:
        getattr(PeriodicTask(name="none", task="a.b"), check)()
    assert {field: len(messages) for field, messages in caught.value.message_dict.items()} == {"interval": 1}
    two = PeriodicTask(name="two", task="a.b", interval=every(60), crontab=cron("0"))
    with pytest.raises(ValidationError) as caught:
        getattr(two, check)()
    assert {field: len(said) for field, said in caught.value.message_dict.items()} == {"interval": 1, "crontab": 1}
