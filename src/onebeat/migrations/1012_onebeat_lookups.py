"""Indexes of what is rare and looked for: tasks set aside or at their end, occurrences that were skipped or failed.

Only rows that are so are in them, so neither a claim nor a worker's word of a run that went well writes to them, and no
column of theirs is one that those change. And what people call the rows of four tables, which no table shows.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations, models

from onebeat.models.indexes import Partial


class AddBesideWriters(migrations.AddIndex):
    """On PostgreSQL without holding anybody up. One that was begun and never finished is made anew."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.remove_index(model, self.index, concurrently=True)  # if there is one
            schema_editor.add_index(model, self.index, concurrently=True)
        else:
            schema_editor.add_index(model, self.index)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        model = from_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.remove_index(model, self.index, concurrently=True)
        else:
            schema_editor.remove_index(model, self.index)


class Migration(migrations.Migration):
    # PostgreSQL builds an index beside writers only outside a transaction.
    atomic = False

    dependencies = [("django_celery_beat", "1011_onebeat_tally")]

    operations = [
        *(
            migrations.AlterModelOptions(name, {"verbose_name": one, "verbose_name_plural": f"{one}s"})
            for name, one in (
                *(("taskstate", "plan"), ("occurrence", "occurrence")),
                *(("beat", "scheduler"), ("action", "action")),
            )
        ),
        AddBesideWriters(
            "taskstate", Partial(fields=["task"], name="onebeat_taskstate_aside", where=models.Q(quarantine__gt=""))
        ),
        AddBesideWriters(
            "taskstate",
            Partial(fields=["task"], name="onebeat_taskstate_ended", where=models.Q(due_at=None, enabled=True)),
        ),
        AddBesideWriters(
            "occurrence", Partial(fields=["reason", "id"], name="onebeat_occurrence_why", where=models.Q(reason__gt=""))
        ),
        AddBesideWriters(
            "occurrence", Partial(fields=["id"], name="onebeat_occurrence_error", where=models.Q(error__gt=""))
        ),
    ]
