"""Card games with a deck of 52 cards, as in PettingZoo, RLCard and Pgx."""
