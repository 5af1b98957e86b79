"""onebeat inside Celery's own processes."""
