"""Every SQL statement that must be safe under concurrency. What differs between databases is in `onebeat.db`."""
