"""SMAX: battles of StarCraft's units as in JaxMARL, without StarCraft."""
