"""Celery as the dispatcher: its app, its schedule objects, and publishing through it."""
