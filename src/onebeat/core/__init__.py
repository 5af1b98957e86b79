"""The rules of scheduling as pure functions: no Django, no Celery, no I/O, no clock read inside a rule."""
