"""Toy text: Gymnasium's small games of cells and cards, transition by transition."""
