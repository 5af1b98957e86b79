"""Tasks from elsewhere: entries of Celery's settings, a Redis of celery-redbeat, another django-celery-beat database.

A source yields rows, or why one could not be read; `carry` compares them with what is here and, if asked, writes.
"""
