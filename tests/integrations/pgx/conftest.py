"""Pgx wrote down the hash of chess's first position when JAX drew its numbers in this way."""

import jax

jax.config.update("jax_threefry_partitionable", False)
