"""What Sentry's Celery integration adds to scheduled messages. Imported only where `sentry_sdk` has loaded it."""
