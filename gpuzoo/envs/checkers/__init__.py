"""Checkers (English draughts), with positions in PDN's notation; exact against OpenSpiel."""
