"""What STORM's games share: the payoffs of a meeting, and the picture."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, param
from gpuzoo.render import Canvas, fade

PLAYER_COLOURS = ("red", "blue", "green", "orange", "purple", "pink", "teal", "#8b5e3c")


@dataclasses.dataclass(frozen=True)
class MeetingConfig(Config):
    """Rounds, and what a meeting pays; the defaults are a prisoner's dilemma."""

    num_inner_steps: int = param(152, low=1, doc="steps of a round")
    num_outer_steps: int = param(1, low=1, doc="rounds of an episode")
    freeze_penalty: int = param(5, low=0, high=32767, doc="steps for which players stand still after they met")
    first_payoff_rr: float = param(3.0, doc="what the first player gets if both have red coins only")
    first_payoff_rb: float = param(0.0, doc="what the first player gets if it has red coins, and the second blue ones")
    first_payoff_br: float = param(5.0, doc="what the first player gets if it has blue coins, and the second red ones")
    first_payoff_bb: float = param(1.0, doc="what the first player gets if both have blue coins only")
    second_payoff_rr: float = param(3.0, doc="what the second player gets if both have red coins only")
    second_payoff_rb: float = param(5.0, doc="what the second player gets if it has blue coins, and the first red ones")
    second_payoff_br: float = param(0.0, doc="what the second player gets if it has red coins, and the first blue ones")
    second_payoff_bb: float = param(1.0, doc="what the second player gets if both have blue coins only")


class MeetingGame(EnvDef):
    """Players on a square field who collect coins of two colours, shoot, and play a matrix game."""

    #: the numbers of a beam, a red coin and a blue coin in `grid`
    beam: ClassVar[int]
    coins: ClassVar[tuple[int, int]]
    #: how the options call the two who meet
    pair: ClassVar[tuple[str, str]] = ("first", "second")
    interaction = "mixed"
    links: ClassVar[Mapping[str, str]] = {
        "JaxMARL": "https://github.com/FLAIROx/JaxMARL/tree/main/jaxmarl/environments/storm",
        "Khan et al. 2023": "https://arxiv.org/abs/2312.12568",
    }
    render_fps = 6

    @classmethod
    def parameters_of(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """JaxMARL's ``payoff_matrix``, `[[[rr, rb], [br, bb]], ...]` for the two who meet, by our names."""
        if "payoff_matrix" not in options:
            return options
        matrix = np.asarray(options["payoff_matrix"], np.float32)
        if matrix.shape != (2, 2, 2):
            raise ValueError(f"payoff_matrix must have the shape (2, 2, 2), not {matrix.shape}.")
        names = [f"{player}_payoff_{kind}" for player in cls.pair for kind in ("rr", "rb", "br", "bb")]
        rest = {name: value for name, value in options.items() if name != "payoff_matrix"}
        return dict(zip(names, matrix.reshape(-1).tolist(), strict=True)) | rest

    def lanes(self, cfg: Any) -> int:
        return 32

    def render(self, cfg: Any, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        cells, inventory = np.asarray(state["cell"]).tolist(), np.asarray(state["inventory"])
        grid = np.asarray(state["grid"])
        side, players = math.isqrt(grid.size), len(cells)
        canvas.background("paper")
        canvas.view(-0.2, -0.2, side + 0.2, side + 0.2, hud=True)
        canvas.cached(_draw_field, side)
        for cell in np.flatnonzero(grid == self.beam).tolist():
            x, y = divmod(cell, side)
            canvas.rect(x + 0.04, y + 0.04, x + 0.96, y + 0.96, fill=fade("yellow", 0.6), radius=0.12)
        for item, colour in zip(self.coins, ("red", "blue"), strict=True):
            for cell in np.flatnonzero(grid == item).tolist():
                x, y = divmod(cell, side)
                canvas.cached(_draw_coin, x + 0.5, y + 0.5, colour)
        waits = np.asarray(state["freeze"]) > 0  # of all, of each, or of each because of each other one
        frozen = np.broadcast_to(waits.any(-1) if waits.ndim == 2 else waits, players)
        for a, cell in enumerate(cells):
            x, y = divmod(cell, side)
            colour = PLAYER_COLOURS[a % len(PLAYER_COLOURS)]
            _draw_player(canvas, x, y, int(state["direction"][a]), colour, bool(frozen[a]), inventory[a].tolist())
        red, blue = inventory.sum(0).tolist()
        still = f"frozen {int(frozen.sum())}   " if frozen.any() else ""
        canvas.hud(left=f"coins held: {red} red, {blue} blue", right=f"{still}step {int(state['elapsed_steps'])}")


def _draw_field(canvas: Canvas, side: int) -> None:
    """The cells."""
    for x in range(side):
        for y in range(side):
            canvas.rect(x + 0.03, y + 0.03, x + 0.97, y + 0.97, radius=0.1, fill="white", outline="line")


def _draw_coin(canvas: Canvas, x: float, y: float, colour: str) -> None:
    """A coin with a rim."""
    canvas.circle(x + 0.03, y - 0.04, 0.22, fill="#1f293730")
    canvas.circle(x, y, 0.22, fill="yellow", outline="#c9962b", width=2.0)
    canvas.circle(x, y, 0.13, fill=colour)


def _draw_player(
    canvas: Canvas, x: int, y: int, direction: int, colour: str, frozen: bool, coins: Sequence[int]
) -> None:
    """A player, which looks along its direction: 0 y + 1, 1 x + 1, 2 y - 1, 3 x - 1, and its red and blue coins."""
    if frozen:
        canvas.circle(x + 0.5, y + 0.5, 0.48, fill=fade("blue", 0.25))
    canvas.dart(x + 0.5, y + 0.5, np.pi / 2 * (1 - direction), 0.36, fill=colour)
    total = sum(coins)
    if total:  # the share of red coins
        left, right, split = x + 0.15, x + 0.85, x + 0.15 + 0.7 * coins[0] / total
        canvas.rect(left, y + 0.06, split, y + 0.14, fill="red")
        canvas.rect(split, y + 0.06, right, y + 0.14, fill="blue")
