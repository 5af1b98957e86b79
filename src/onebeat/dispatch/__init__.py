"""Where claimed occurrences go. `base` is what the engine knows; `celery` is the one that publishes."""
