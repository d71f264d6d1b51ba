"""STORM: players collect coins of two colours, the strategies of a matrix game, and meet to play it."""
