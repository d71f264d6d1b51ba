"""Makes the README's picture: pretrained agents in games of the registry."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import films
import numpy as np
from gallery import families

import gpuzoo
from baselines.report import match, video
from baselines.train.command import PRETRAINED
from gpuzoo.render import save_animation, tile

TARGET = Path(__file__).parent / "_static" / "readme.gif"
COLUMNS, ROWS, PIXELS, FRAMES, FPS = 4, 3, 200, 40, 10


def film(name: str) -> list[Any]:
    """Square pictures of a game at about `FPS`, each as it is at that time."""
    arranged = match.arrange(name, {}, PRETRAINED)
    every = max(1, round(video.rate(name)[0] / FPS))
    shown = video.pictures(name, arranged.players, arranged.config, envs=1, size=PIXELS)
    pictures = [*itertools.islice(shown, 0, FRAMES * every, every)]
    shown.close()
    height, width = pictures[0].shape[:2]
    margins = (
        ((PIXELS - height) // 2, -(-(PIXELS - height) // 2)),
        ((PIXELS - width) // 2, -(-(PIXELS - width) // 2)),
        (0, 0),
    )
    return [np.pad(picture, margins, constant_values=255) for picture in pictures]


def main() -> None:
    """Of each folder the game with the most agents; of these the ones with the most, in the order of their ids."""
    size = {name: sum(gpuzoo.get(name).agents(gpuzoo.get(name).Config()).values()) for name in gpuzoo.ids()}
    trained = [[name for name in names if films.pretrained(name)] for names in families().values()]
    best = [max(names, key=size.__getitem__) for names in trained if names]
    chosen = sorted(sorted(best, key=lambda name: -size[name])[: COLUMNS * ROWS])
    moments = zip(*(film(name) for name in chosen), strict=True)
    save_animation([tile(moment, COLUMNS) for moment in moments], TARGET, FPS)
    print(f"{TARGET.name}: {', '.join(chosen)}; {TARGET.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
