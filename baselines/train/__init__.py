"""The trainers: envs, policies and learners of a population, in plain torch."""
