"""bsuite: DeepMind's small probes of exploration, memory, credit and noise, as they are in its first version."""
