"""Social dilemmas: what is good for one agent is bad for all."""
