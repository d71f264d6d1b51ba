"""MPE2 has PettingZoo's parallel interface."""

from . import About
from .pettingzoo import peer as peer

ABOUT = About("MPE2", original=True, one_core=True)
