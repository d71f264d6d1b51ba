"""MinAtar: five Atari games on ten by ten cells, exact against the original, with its sticky actions and its ramps."""
