"""The records of a run: log, plots, films, evaluations, checkpoints and matches."""
