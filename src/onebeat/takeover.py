"""`import onebeat.takeover` at the top of the settings: `django_celery_beat` means onebeat from there on.

For projects that cannot change the line `"django_celery_beat"` (or `"django_celery_beat.apps.BeatConfig"`) of their
INSTALLED_APPS, and for code that imports django_celery_beat before Django is set up. It has to come first. It holds
whatever `ONEBEAT["import_alias"]` says.
"""

from onebeat.compat import alias

alias.install()
