"""MNIST bandit."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import EnvDef, Field, param
from gpuzoo.envs.bsuite.digits import load, shape
from gpuzoo.envs.bsuite.rewards import RewardConfig
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class MNISTBanditConfig(RewardConfig):
    """The pictures, and what is done with the rewards."""

    data: str = param("", doc="folder with MNIST's training files, or an .npz file; nothing: digits drawn by gpuzoo")
    fraction: float = param(1.0, low=0.0, high=1.0, doc="share of the pictures that are used, from the first one on")
    signed_pixels: bool = param(True, doc="bytes from 128 on are negative, as in bsuite; else pixels are 0 to 1")


class MNISTBandit(EnvDef):
    """Say which digit is in the picture: each picture is an episode of one step.

    Osband et al., "Behaviour suite for reinforcement learning" (2019): the experiments `mnist`, `mnist_noise` and
    `mnist_scale`.

    **Pictures.** MNIST may not be shipped with this package, so the default is a set of 500 digits that gpuzoo draws
    itself. They have MNIST's format, and are easier. `data` names files to read pictures from:

    - a folder with `train-images-idx3-ubyte` and `train-labels-idx1-ubyte`, packed (`.gz`) or not, or
    - an `.npz` file with `x_train` (n, height, width) and `y_train` (n), both as integers.

    Nothing is ever downloaded.

    **Actions.** `Discrete(10)`: the digit.

    **Observation.** `Box(28, 28)`, float32: the pixels / 255; after the step 0 everywhere. bsuite (and Gymnax) read the
    bytes of MNIST as signed ones, so that the brightest half of the pixels becomes negative: 127 / 255 is followed by
    -128 / 255, and full ink is -1 / 255. That is kept, so that results can be compared; `signed_pixels=False` gives
    pixels from 0 to 1.

    **Beginning.** A picture is drawn from the first `fraction` of all, rounded to the nearest number (bsuite rounds
    down).

    **Reward.** 1 if the digit is right, -1 if it is wrong. Then `reward_scale` times the reward, plus `noise_scale`
    times a number of the standard normal distribution.

    **End.** After one step.

    An action out of range counts as 0.
    """

    id = "MNISTBandit-bsuite-v0"
    Config = MNISTBanditConfig
    reference = "bsuite 0.3.6 MNISTBandit"
    links: ClassVar[Mapping[str, str]] = {
        "bsuite": "https://github.com/google-deepmind/bsuite",
        "Osband et al. 2019": "https://arxiv.org/abs/1908.03568",
        "LeCun et al. 1998": "https://doi.org/10.1109/5.726791",
    }
    short_episodes = True
    render_fps = 2

    def lanes(self, cfg: MNISTBanditConfig) -> int:
        return 32

    def check(self, cfg: MNISTBanditConfig) -> None:
        load(cfg.data)

    def observation_space(self, cfg: MNISTBanditConfig, group: str) -> spaces.Box:
        low, high = (-128 / 255, 127 / 255) if cfg.signed_pixels else (0.0, 1.0)
        return spaces.Box(low, high, shape(cfg.data), np.float32)

    def action_space(self, cfg: MNISTBanditConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(10)

    def observation_names(self, cfg: MNISTBanditConfig, group: str) -> dict[str, int]:
        return {"the pixels, row by row": math.prod(shape(cfg.data))}

    def action_names(self, cfg: MNISTBanditConfig, group: str) -> dict[str, int]:
        return {f"say that the digit is {k}": 1 for k in range(10)}

    def fields(self, cfg: MNISTBanditConfig) -> dict[str, Field]:
        return {"index": Field("int32", doc="number of the picture")}

    def constants(self, cfg: MNISTBanditConfig) -> dict[str, int]:
        return {"IMAGES": len(load(cfg.data)[1])}

    def tables(self, cfg: MNISTBanditConfig) -> dict[str, NDArray[Any]]:
        images, labels = load(cfg.data)
        pixels = images.view(np.int8 if cfg.signed_pixels else np.uint8).ravel()
        return {"thrice": 3 * pixels.astype(np.int16), "label": labels.astype(np.int32)}

    def render(self, cfg: MNISTBanditConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        images, labels = load(cfg.data)
        index = int(state["index"])
        image = images[index]
        height, width = image.shape
        canvas.background("slate")
        canvas.view(-0.06 * width, -0.06 * height, 1.06 * width, 1.06 * height, y_down=True, hud=True)
        over = int(state["elapsed_steps"]) > 0
        shade = 255 - image // 4 if over else 255 - image
        canvas.rect(-0.35, -0.35, width + 0.35, height + 0.35, fill="white", radius=0.5)
        canvas.image(np.repeat(shade[..., None], 3, axis=2), 0, 0, width, height)
        words = f"it was {labels[index]}" if over else "which digit is it?"
        canvas.hud(left=f"MNIST bandit   {words}", right=f"picture {index}")
