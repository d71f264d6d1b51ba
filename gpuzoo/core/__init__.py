"""The engine; knows nothing of any RL library."""
