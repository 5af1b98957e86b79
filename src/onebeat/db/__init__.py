"""The one place where PostgreSQL, MySQL/MariaDB and SQLite differ. Nothing here knows what a task is."""
