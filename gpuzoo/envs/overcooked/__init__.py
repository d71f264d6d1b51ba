"""Overcooked: cooks who share a small kitchen, exact against overcooked-ai and JaxMARL."""
