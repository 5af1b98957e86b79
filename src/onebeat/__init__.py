"""onebeat: the database-backed scheduler for Django and Celery."""
