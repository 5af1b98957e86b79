"""An app of somebody else, with a foreign key to our tasks."""
