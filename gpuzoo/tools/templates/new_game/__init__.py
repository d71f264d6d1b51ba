"""A game that works, to be copied."""
