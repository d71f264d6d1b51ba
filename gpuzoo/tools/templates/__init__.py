"""The game that ``gpuzoo new`` starts from."""
