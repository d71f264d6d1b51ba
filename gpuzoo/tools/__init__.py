"""The command line and what it runs: listing, diagnosis, benchmarks, new games."""
