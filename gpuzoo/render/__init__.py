"""Drawing for the games' ``render`` methods: a canvas, tiling, animations and a window.

Pillow, pygame and imageio are imported on first use only. **Units.** Positions, radii and lengths
are in the game's world units (see `Canvas.view`). Line widths and text sizes are in *points*: one
point is 1/400 of the canvas's shorter side, so a drawing looks the same at every resolution.
Angles are in radians and mean the world direction ``(cos a, sin a)``. **Colours** are
``'#rrggbb'``, ``'#rrggbbaa'`` or names from `PALETTE`.
"""

from gpuzoo.render.animation import save_animation, tile
from gpuzoo.render.canvas import Canvas
from gpuzoo.render.colours import CYCLE, PALETTE, fade, mix
from gpuzoo.render.picture import picture_size
from gpuzoo.render.window import Window

__all__ = ["CYCLE", "PALETTE", "Canvas", "Window", "fade", "mix", "picture_size", "save_animation", "tile"]
