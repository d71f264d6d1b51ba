"""One RL library per file, imported by its users only."""
