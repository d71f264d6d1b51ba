"""RubiksCube."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.jumanji.instances import InstanceConfig, OfInstances, Part
from gpuzoo.render import Canvas

FACES = ("up", "front", "right", "back", "left", "down")
TURNS = ("clockwise", "anti-clockwise", "half")
COLOURS = ("white", "green", "red", "blue", "orange", "yellow")
#: outwards, rightwards and upwards on each face, along x (right), y (up) and z (front)
AXES = np.array([
    [[0, 1, 0], [1, 0, 0], [0, 0, -1]],
    [[0, 0, 1], [1, 0, 0], [0, 1, 0]],
    [[1, 0, 0], [0, 0, -1], [0, 1, 0]],
    [[0, 0, -1], [-1, 0, 0], [0, 1, 0]],
    [[-1, 0, 0], [0, 0, 1], [0, 1, 0]],
    [[0, -1, 0], [1, 0, 0], [0, 0, 1]],
])  # fmt: skip
#: column and row of each face in the picture, in faces
NET = ((1, 0), (1, 1), (2, 1), (3, 1), (0, 1), (1, 2))


@dataclasses.dataclass(frozen=True)
class RubiksCubeConfig(InstanceConfig):
    """The cube."""

    cube_size: int = param(3, low=2, high=20, doc="stickers along an edge")
    num_scrambles_on_reset: int = param(100, low=0, high=100_000, doc="random turns that mix the solved cube")


class RubiksCube(OfInstances):
    """Rubik's cube of any size: solve it, so that each face has one colour.

    A turn takes one layer of the cube by 90 degrees, as seen from outside of the face that it is parallel to, or by
    180. At the beginning ``num_scrambles_on_reset`` random turns have mixed the solved cube.

    **Instances.** ``instances`` is a dataset with `cube`, (instances, 6, cube_size, cube_size), colours as they are
    observed. Each episode takes one of them at random, or always the one that ``instance`` names, which may differ
    between envs.

    **Actions.** `Discrete(6 (cube_size // 2) 3)`: (face ``cube_size // 2`` + depth) 3 + turn. The faces are up, front,
    right, back, left, down; depth 0 is the layer of the face itself; the turns are clockwise, anti-clockwise and half.

    **Observation.** `Box(0, 5, (6, cube_size squared))`, int8: face, and on it the stickers of each row, from above;
    the colour as the number of the face which it belongs to. Front, right, back and left are seen with the upper face
    above, the upper and the lower face with the front below or above it.

    **Reward.** 1 for solving the cube.

    **End.** Each face has one colour. Time limit: 200 steps.

    **In Jumanji** the time limit terminates the episode, an action is a face, a depth and a turn, and the number of
    steps is observed.
    """

    id = "RubiksCube-v0"
    Config = RubiksCubeConfig
    max_episode_steps = 200
    reference = "jumanji==1.1.2 RubiksCube-v0"
    links: ClassVar[Mapping[str, str]] = {"Jumanji": "https://instadeepai.github.io/jumanji/environments/rubiks_cube/"}
    similar = (r"[Rr]ubik.*", r"cube3")
    expert = "gpuzoo.envs.jumanji.thistlethwaite:best_moves"
    render_fps = 20

    @classmethod
    def variants(cls) -> dict[str, dict[str, Any]]:
        return {
            "RubiksCube-partly-scrambled-v0": {
                "num_scrambles_on_reset": 7,
                "max_episode_steps": 20,
                "render_fps": 4,
                "reference": "jumanji==1.1.2 RubiksCube-partly-scrambled-v0",
            }
        }

    def parts(self, cfg: RubiksCubeConfig) -> dict[str, Part]:
        return {"cube": Part((6, cfg.cube_size, cfg.cube_size), "int8", 0, 5)}

    def constants(self, cfg: RubiksCubeConfig) -> dict[str, int]:
        n = cfg.cube_size
        own = {"SIZE": n, "FACE": n * n, "STICKERS": 6 * n * n, "LAYERS": 6 * (n // 2), "CYCLES": n + n * n // 4}
        return {**super().constants(cfg), **own}

    def tables(self, cfg: RubiksCubeConfig) -> dict[str, NDArray[Any]]:
        return {**super().tables(cfg), "cycles": cycles(cfg.cube_size).reshape(-1)}

    def observation_space(self, cfg: RubiksCubeConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 5, (6, cfg.cube_size**2), np.int8)

    def action_space(self, cfg: RubiksCubeConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(6 * (cfg.cube_size // 2) * len(TURNS))

    def observation_names(self, cfg: RubiksCubeConfig, group: str) -> dict[str, int]:
        return {f"colours on the {face} face": cfg.cube_size**2 for face in FACES}

    def action_names(self, cfg: RubiksCubeConfig, group: str) -> dict[str, int]:
        depths = range(cfg.cube_size // 2)
        return {f"{face}, depth {k}, {turn}": 1 for face in FACES for k in depths for turn in TURNS}

    def fields(self, cfg: RubiksCubeConfig) -> dict[str, Field]:
        return {"cube": Field("int8", ("STICKERS",), "colour of each sticker: face, row, column")}

    def infos(self, cfg: RubiksCubeConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        faces = state["cube"].reshape(-1, 6, cfg.cube_size**2)
        return {"solved": (faces == faces[..., :1]).reshape(len(faces), -1).all(1)}

    def aspect(self, cfg: RubiksCubeConfig) -> float:
        return 4 / 3

    def render(self, cfg: RubiksCubeConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        n = cfg.cube_size
        cube = np.asarray(state["cube"]).reshape(6, n, n)
        canvas.background("mist")
        canvas.view(-0.15, -0.15, 4.15, 3.15, y_down=True, hud=True)
        for face, (left, top) in enumerate(NET):
            canvas.rect(left + 0.02, top + 0.02, left + 0.98, top + 0.98, fill="ink", radius=0.04)
            side = 0.92 / n
            for row in range(n):
                for column in range(n):
                    x, y = left + 0.04 + side * column, top + 0.04 + side * row
                    colour, gap = COLOURS[int(cube[face, row, column])], 0.06 * side
                    canvas.rect(x + gap, y + gap, x + side - gap, y + side - gap, fill=colour, radius=0.15 * side)
        canvas.hud(right=f"turn {int(state['elapsed_steps'])}")


@functools.cache
def cycles(n: int) -> NDArray[np.int16]:
    """The stickers that a clockwise turn moves, each to where the next one of its four was.

    Returns:
        (6 faces, n // 2 layers, cycles, 4). Layers with fewer cycles than others have some more, of one sticker.
    """
    row, column = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    across, down = 2 * column.reshape(-1) - (n - 1), 2 * row.reshape(-1) - (n - 1)
    outward, right, up = (np.repeat(AXES[:, k], n * n, axis=0) for k in range(3))
    place = n * outward + np.tile(across, 6)[:, None] * right - np.tile(down, 6)[:, None] * up
    number = {tuple(p): k for k, p in enumerate(place.tolist())}
    out = np.zeros((6, n // 2, n + n * n // 4, 4), np.int16)
    for face in range(6):
        axis = AXES[face, 0]
        for layer in range(n // 2):
            # clockwise as seen from outside: by -90 degrees about the axis
            turned = np.cross(place, axis) + np.outer(place @ axis, axis)
            target = np.array([number[tuple(p)] for p in turned.tolist()])
            height = place @ axis
            moves = (height == n - 1 - 2 * layer) | ((height == n) if layer == 0 else False)
            left, found = {*np.flatnonzero(moves & (target != np.arange(len(place)))).tolist()}, []
            while left:
                first = min(left)
                four = [first, *(int(target[k]) for k in (first, target[first], target[target[first]]))]
                found.append(four)
                left -= {*four}
            out[face, layer, : len(found)] = found
    return out
