"""MPE, the multi-agent particle worlds: discs that push themselves through the plane; exact against MPE2."""
