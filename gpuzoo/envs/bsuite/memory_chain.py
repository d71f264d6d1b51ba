"""Memory chain."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class MemoryChainConfig(Config):
    """How much is to be remembered, and for how long."""

    memory_length: int = param(5, low=1, high=100_000, doc="steps between the bits and the question; bsuite: 1 to 100")
    num_bits: int = param(1, low=1, high=64, doc="number of bits; bsuite: 1 to 40")


class MemoryChain(EnvDef):
    """Bits are shown at the beginning; at the end the agent is asked for one of them.

    Osband et al., "Behaviour suite for reinforcement learning" (2019): the experiments `memory_len` (one bit) and
    `memory_size` (`memory_length` 2).

    **Actions.** `Discrete(2)`: the answer. Only the one of the last step counts.

    **Observation.** `Box(2 + num_bits)`, float32, of the time that follows:

    | entry | what |
    |---|---|
    | 0 | 1 - time / `memory_length` |
    | 1 | the number of the bit that is asked for, at time `memory_length` - 1; otherwise 0 |
    | 2... | the bits as 1 and -1 at time 0; otherwise 0 |

    The time is 0 at the beginning, and one less than the number of steps afterwards: the bits are seen twice, before
    the first step and after it. That is how bsuite's game is.

    **Beginning.** Each bit is 0 or 1 with equal probability, and so is each bit asked for.

    **Reward.** In the last step: 1 if the action is the bit that was asked for, -1 if it is not. Otherwise 0.

    **End.** After `memory_length` + 1 steps.

    bsuite's observation has an axis of length 1 in front, Gymnax's has not. The default of `memory_length` is Gymnax's,
    as bsuite has none. An action out of range counts as 0.
    """

    id = "MemoryChain-bsuite-v0"
    Config = MemoryChainConfig
    short_episodes = True
    reference = "bsuite 0.3.6 MemoryChain"
    links: ClassVar[Mapping[str, str]] = {
        "bsuite": "https://github.com/google-deepmind/bsuite",
        "Osband et al. 2019": "https://arxiv.org/abs/1908.03568",
    }
    render_fps = 3

    def observation_space(self, cfg: MemoryChainConfig, group: str) -> spaces.Box:
        low = np.array([0.0, 0.0] + [-1.0] * cfg.num_bits, np.float32)
        high = np.array([1.0, max(cfg.num_bits - 1.0, 1.0)] + [1.0] * cfg.num_bits, np.float32)
        return spaces.Box(low, high, dtype=np.float32)

    def action_space(self, cfg: MemoryChainConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(2)

    def observation_names(self, cfg: MemoryChainConfig, group: str) -> dict[str, int]:
        return {
            "1 - time / memory_length": 1,
            "number of the bit that is asked for": 1,
            "the bits, as 1 and -1": cfg.num_bits,
        }

    def action_names(self, cfg: MemoryChainConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("answer 0", "answer 1"), 1)

    def fields(self, cfg: MemoryChainConfig) -> dict[str, Field]:
        return {
            "context": Field("uint32" if cfg.num_bits <= 32 else "uint64", doc="the bits, bit k being the k-th"),
            "query": Field("int32", doc="number of the bit that is asked for"),
        }

    def render(self, cfg: MemoryChainConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        length, n = cfg.memory_length, cfg.num_bits
        context, query = int(state["context"]), int(state["query"])
        time = max(int(state["elapsed_steps"]) - 1, 0)
        shown, asked = time == 0, time == length - 1
        columns = int(np.ceil(np.sqrt(n)))
        rows = -(-n // columns)
        canvas.background("paper")
        canvas.view(-0.1, -0.1, 1.1, 1.1, y_down=True, hud=True)
        size = 0.72 / max(columns, rows)
        left, top = 0.5 - columns * size / 2, 0.4 - rows * size / 2
        for k in range(n):
            x, y = left + size * (k % columns), top + size * (k // columns)
            gap = 0.06 * size
            bit, wanted = context >> k & 1, asked and k == query
            face = ("blue" if bit == 0 else "orange") if shown else "mist"
            edge = "red" if wanted else "grey"
            canvas.rect(x + gap, y + gap, x + size - gap, y + size - gap, fill=face, outline=edge,
                        width=5 if wanted else 1.5, radius=0.1 * size)  # fmt: skip
            what = str(bit) if shown else "?"
            canvas.text(x + size / 2, y + size / 2, what, height=0.5 * size, bold=True,
                        colour="white" if shown else "red" if wanted else "grey")  # fmt: skip
        canvas.rect(0.05, 0.93, 0.95, 1.0, fill="mist", outline="grey", radius=0.02)
        part = max(0.0, (length - time) / length)
        if part > 0:
            canvas.rect(0.06, 0.94, 0.06 + 0.88 * part, 0.99, fill="teal", radius=0.015)
        words = "look" if shown else "answer" if asked else "over" if time >= length else "remember"
        canvas.hud(left=f"Memory chain   {words}", right=f"step {int(state['elapsed_steps'])} of {length + 1}")
