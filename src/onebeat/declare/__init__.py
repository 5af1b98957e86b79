"""Tasks declared in code: `recurring(...)` in an app's `schedules.py`, and the entries of CELERY_BEAT_SCHEDULE.

Nothing is imported here: a declaration needs no model, and the sync needs all of them.
"""
