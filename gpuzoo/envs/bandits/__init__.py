"""Bandits: two arms whose pay is drawn anew for each episode, for agents that learn to learn."""
