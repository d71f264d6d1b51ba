"""Dots and boxes, exact against OpenSpiel."""
