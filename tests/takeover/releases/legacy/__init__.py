"""A project on django-celery-beat that is taken to onebeat and back.

It runs under the Python, Django and Celery of each release, 3.8 and 3.1 the oldest, and afterwards under onebeat's own.
Nothing of the tests can be imported here.
"""
