"""``gpuzoo view``: a page on this machine that shows the games, plays them and lets a person play along."""
