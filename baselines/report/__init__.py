"""What is told of a run and kept of it: log, plots, films, evaluations, checkpoints and matches."""
