"""A window that shows frames, and what is pressed in it."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

from gpuzoo.render.libraries import need
from gpuzoo.render.picture import Frame


def need_display() -> ModuleType:
    """Make sure that a window can be opened, and return pygame with its display begun.

    Raises:
        ImportError: pygame is not installed.
        RuntimeError: There is no display. A driver that shows nothing is accepted where SDL_VIDEODRIVER names it.
    """
    pygame = need("pygame", "A window", "pygame: pip install 'gpuzoo[render]'")
    problem, screens = "", ("DISPLAY", "WAYLAND_DISPLAY")
    asked = os.environ.get("SDL_VIDEODRIVER") or os.environ.get("SDL_VIDEO_DRIVER") or ""
    try:
        if sys.platform == "linux" and not asked and not any(os.environ.get(name) for name in screens):
            raise pygame.error("DISPLAY and WAYLAND_DISPLAY name no screen")  # SDL would write a line of its own
        pygame.display.init()
        driver = pygame.display.get_driver()
        if driver in ("offscreen", "dummy") and driver not in asked.split(","):
            pygame.display.quit()
            problem = "DISPLAY and WAYLAND_DISPLAY name no screen"
    except pygame.error as error:
        problem = str(error)
    if problem:
        raise RuntimeError(
            f"a window needs a display, and there is none ({problem}): use render_mode='rgb_array' and save the "
            "frames, `gpuzoo record`, or a virtual display such as xvfb-run."
        )
    return pygame


class Window:
    """A pygame window, opened by the first `show`; the constructor does nothing else.

    Attributes:
        title: its title, which may change.
        closed: whether it was closed, by its button, by Escape or by `close`.
        held: keys that are pressed, the latest first, by their names in browsers: ``"ArrowLeft"``, ``" "``, ``"a"``.
        struck: keys that were pressed since they were last taken from this list.
        pointer: where the mouse or a finger is pressed, from 0 to 1 rightwards and downwards, or None.
        clicked: where it was pressed since these places were last taken from this list.
    """

    def __init__(self, title: str = "gpuzoo", fps: float | None = None) -> None:
        """Remember the title and the rate (frames a second) to which `show` slows down."""
        self.title, self.fps = title, fps
        self.closed = False
        self.held: list[str] = []
        self.struck: list[str] = []
        self.pointer: tuple[float, float] | None = None
        self.clicked: list[tuple[float, float]] = []
        self._pygame: ModuleType | None = None
        self._screen: Any = None
        self._clock: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is another window, which is not open yet."""
        return Window, (self.title, self.fps)

    def show(self, frame: Frame) -> bool:
        """Show a frame (H, W, 3) uint8; return False once the window has been closed.

        Raises:
            ImportError: pygame is not installed.
            RuntimeError: There is no display.
        """
        if self.closed:
            return False
        if self._pygame is None:
            self._pygame = need_display()
            self._clock = self._pygame.time.Clock()
        size = (frame.shape[1], frame.shape[0])
        if self._screen is None or self._screen.get_size() != size:
            self._screen = self._pygame.display.set_mode(size)
        if self._pygame.display.get_caption()[0] != self.title:
            self._pygame.display.set_caption(self.title)
        if not self._listen():
            self.close()
            return False
        self._pygame.surfarray.blit_array(self._screen, frame.swapaxes(0, 1))
        self._pygame.display.flip()
        if self.fps:
            self._clock.tick(self.fps)
        return True

    def _listen(self) -> bool:
        """Notice keys and mouse; return False where somebody wants to close the window."""
        pygame, arrows = self._pygame, {"left", "right", "up", "down"}
        assert pygame is not None
        for event in pygame.event.get():
            if event.type == pygame.QUIT or (event.type == pygame.KEYDOWN and event.key == pygame.K_ESCAPE):
                return False
            if event.type in (pygame.KEYDOWN, pygame.KEYUP):
                name = pygame.key.name(event.key)
                key = f"Arrow{name.title()}" if name in arrows else " " if name == "space" else name
                self.held = [other for other in self.held if other != key]
                if event.type == pygame.KEYDOWN:
                    self.held, self.struck = [key, *self.held], [*self.struck, key]
            elif event.type == pygame.MOUSEBUTTONUP:
                self.pointer = None
            elif event.type == pygame.MOUSEBUTTONDOWN or (event.type == pygame.MOUSEMOTION and self.pointer):
                width, height = self._screen.get_size()
                self.pointer = event.pos[0] / width, event.pos[1] / height
                if event.type == pygame.MOUSEBUTTONDOWN:
                    self.struck, self.clicked = [*self.struck, ""], [*self.clicked, self.pointer]
        return True

    def close(self) -> None:
        """Close the window; later calls of `show` do nothing. Safe to call twice."""
        self.closed = True
        if self._pygame is not None:
            self._pygame.display.quit()
            self._pygame = self._screen = self._clock = None
