"""Integrations, each a room of its own that is imported only where it is used."""
