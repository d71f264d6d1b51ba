"""Jumanji: combinatorial games of routing, packing and logic, exact against Jumanji; instances drawn or given."""
