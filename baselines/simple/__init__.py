"""Algorithms in one file each: plain torch over gpuzoo's public API, to be read from top to bottom and changed."""
