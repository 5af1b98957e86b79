"""`django_celery_beat.apps`."""

# Under one name only: Django takes the one config that it finds in an app's module.
from onebeat.apps import OnebeatConfig as BeatConfig

__all__ = ["BeatConfig"]
