"""The public names of django-celery-beat 2.9 that are not kept, or do not do as they did, each with the reason."""

from __future__ import annotations

_ROW = "It returns the one row of the value, saved: an unsaved object would bring duplicates back."
_DELETE = "Deleting one that several tasks use is refused, with the tasks named; with one user it takes that one along."

GONE: dict[str, str] = {}

OTHERWISE: dict[str, str] = {
    "apps.BeatConfig": "It is onebeat's config: `name` is still `django_celery_beat`, the files lie elsewhere.",
    "admin.PeriodicTaskAdmin": "The page as it was, for subclasses. The admin itself shows onebeat's own page.",
    "admin.PeriodicTaskAdmin.change_form_template": "None: crontabs are put into words by the page, not a script.",
    "admin.PeriodicTaskAdmin.disable_tasks": "`last_run_at` stays: nothing is decided by it.",
    "admin.PeriodicTaskAdmin.crontab_translation": "Empty for a task that has no crontab; it raised AttributeError.",
    "models.ClockedSchedule": _DELETE,
    "models.CrontabSchedule": f"{_DELETE} An invalid one is refused by `create` and `save` already.",
    "models.IntervalSchedule": _DELETE,
    "models.SolarSchedule": _DELETE,
    "models.ClockedSchedule.from_schedule": _ROW,
    "models.CrontabSchedule.from_schedule": _ROW,
    "models.IntervalSchedule.from_schedule": f"{_ROW} A fraction of a second is kept, in microseconds.",
    "models.SolarSchedule.from_schedule": _ROW,
    "models.CrontabSchedule.due_start_time": "A match at the start itself counts.",
    "models.CrontabSchedule.human_readable": "onebeat's own words, in the active language, without cron-descriptor.",
    "models.CrontabSchedule.schedule": "It has the zone of its row, also with `DJANGO_CELERY_BEAT_TZ_AWARE = False`.",
    "models.PeriodicTask.delete": "Django's own, with Django's arguments.",
    "models.PeriodicTask.due_start_time": "A match of a crontab at the start itself counts.",
    "models.PeriodicTask.save": "`last_run_at` of a disabled task stays; JSON and the choice of schedule are checked.",
    "models.PeriodicTask.validate_unique": "In our own words, beside the field. `clean_fields` and `save` check too.",
    "models.PeriodicTasks": (
        "Nothing in onebeat waits for it. `last_change()` moves with each committed change, `last_update` a moment "
        "later."
    ),
    "querysets.PeriodicTaskQuerySet.enabled": "The schedules come in the same query (`select_related`).",
    "schedulers.DatabaseScheduler": (
        "It runs onebeat's engine, which keeps nothing in memory; so does a subclass whose `tick` calls `super()`. One "
        "that replaces more than the hooks about sending and declaring runs in classic mode, which names what it "
        "replaced and which promises are off."
    ),
    "schedulers.DatabaseScheduler.enabled_models_qs": "All enabled tasks: none is left out for being far ahead.",
    "schedulers.DatabaseScheduler.setup_schedule": "Called at the first tick; in classic mode by the constructor.",
    "schedulers.DatabaseScheduler.update_from_dict": "An entry that a task cannot hold whole is refused, and logged.",
    "schedulers.DatabaseScheduler.sync": "An entry whose `save` raises does not keep the others from being written.",
    "schedulers.ModelEntry": "A row that cannot be read raises; it is not disabled.",
    "schedulers.ModelEntry.is_due": "It writes nothing: finished and expired tasks are disabled by the engine.",
    "schedulers.ModelEntry._unpack_fields": "To be called with names, as it is by `from_entry`.",
    "schedulers.ModelEntry._unpack_options": "To be called with names; one that has no place in a task is refused.",
    "signals.signals_connect": "It does nothing: changes are seen in the data.",
    "utils.is_database_scheduler": 'True for `"onebeat"` as well.',
    "validators.crontab_validator": "onebeat's one grammar.",
    "validators.minute_validator": (
        "onebeat's one grammar, without spaces, ranges that wrap and steps past the field, as ever; so for the other "
        "four."
    ),
}
