"""Makes the README's picture from games in the registry, under random actions."""

from __future__ import annotations

from pathlib import Path

from films import frames
from gallery import families

import gpuzoo
from gpuzoo.render import save_animation, tile

TARGET = Path(__file__).parent / "_static" / "readme.gif"
COLUMNS, ROWS, PIXELS, FRAMES, FPS = 4, 3, 200, 30, 10


def main() -> None:
    """Of each folder the game with the most agents; of these the ones with the most, in the order of their ids."""
    size = {name: sum(gpuzoo.get(name).agents(gpuzoo.get(name).Config()).values()) for name in gpuzoo.ids()}
    films = {}
    for name in sorted((max(names, key=size.__getitem__) for names in families().values()), key=lambda n: -size[n]):
        stride = max(1, round(gpuzoo.get(name).render_fps / FPS))
        film = frames(gpuzoo.get(name), FRAMES, stride, size=PIXELS, aspect=1.0)  # side by side
        if film:
            films[name] = film
    count = min(len(films), COLUMNS * ROWS)
    count -= count % COLUMNS if count > COLUMNS else 0  # whole rows
    chosen = sorted(list(films)[:count])
    moments = zip(*(films[name] for name in chosen), strict=True)
    save_animation([tile(moment, min(COLUMNS, count)) for moment in moments], TARGET, FPS)
    print(f"{TARGET.name}: {', '.join(chosen)}; {TARGET.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
