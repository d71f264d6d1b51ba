"""Programs that somebody else wrote as opponents in board games: by GTP, UCI, USI, or protocols of their own.

    python -m baselines.engines Go-v0 "gnugo --mode gtp --level 1" --games 20

A protocol is a class with `choose`; see `baselines.engines.position.Engine`.
"""
