"""What people want to know, answered as values. Nothing here writes or prints."""
