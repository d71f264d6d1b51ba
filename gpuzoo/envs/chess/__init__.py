"""Chess: on eight by eight and five by five squares, with AlphaZero's actions and observations; exact against Pgx."""
