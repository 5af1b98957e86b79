"""Take over a django-celery-beat database and its name, and give both back.

`import onebeat.takeover` as the first line of a settings module makes `django_celery_beat` mean onebeat from there on.
It is for projects that cannot change the line `"django_celery_beat"` of their INSTALLED_APPS, and for code that imports
django_celery_beat before Django is set up. It holds whatever `ONEBEAT["import_alias"]` says.
"""

from django.conf import settings

from onebeat.takeover import alias

if not settings.configured:  # imported by the settings, and not by onebeat's own code later on
    alias.install()
