"""Every SQL statement that must be safe under concurrency. `vendors` holds what differs between databases."""
