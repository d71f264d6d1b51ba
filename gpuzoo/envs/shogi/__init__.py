"""Shogi, with dlshogi's actions and observations, exact against Pgx."""
