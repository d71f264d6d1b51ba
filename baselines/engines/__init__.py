"""Programs of board games that somebody else wrote, as opponents: by GTP, UCI, USI, XBoard's protocol, and GNU Backgammon's.

    python -m baselines.engines Go-v0 "gnugo --mode gtp --level 1" --games 20
"""
