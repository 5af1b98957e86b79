"""Other people's code around django-celery-beat, from the package index, on a project that goes to onebeat and back."""
