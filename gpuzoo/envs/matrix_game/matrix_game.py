"""Repeated matrix games."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import CYCLE, Canvas, fade

_SYMMETRIC = {  # the row player's payoffs: own move, the other's move
    "prisoners_dilemma": ((3, 0), (5, 1)),
    "stag_hunt": ((4, 1), (3, 2)),
    "chicken": ((0, -1), (1, -10)),
}
MOVES = {
    "prisoners_dilemma": ("cooperate", "defect"),
    "stag_hunt": ("stag", "hare"),
    "chicken": ("swerve", "straight"),
    "matching_pennies": ("heads", "tails"),
    "rock_paper_scissors": ("rock", "paper", "scissors", "spock", "lizard"),
}
"""Names of the moves, in the order of the actions."""


def payoffs_of(game: str, num_actions: int = 3) -> NDArray[np.float32]:
    """Payoffs of a named game for two players, (actions, actions, 2) float32."""
    if game == "matching_pennies":
        own = np.array([[1, -1], [-1, 1]])
        return np.stack([own, -own], axis=-1).astype(np.float32)
    if game == "rock_paper_scissors":
        a, b = np.indices((num_actions, num_actions))
        own = np.where(a == b, 0, np.where(((a + b) % 2 == 0) == (a < b), 1, -1))
    else:
        own = np.array(_SYMMETRIC[game])
    return np.stack([own, own.T], axis=-1).astype(np.float32)


@dataclasses.dataclass(frozen=True)
class MatrixGameConfig(Config):
    """Which game, and how much of the past is seen."""

    game: Literal["prisoners_dilemma", "stag_hunt", "chicken", "matching_pennies", "rock_paper_scissors"] = param(
        "prisoners_dilemma", doc="the payoffs"
    )
    num_actions: int = param(3, low=3, high=255, doc="moves of rock_paper_scissors; odd")
    memory: int = param(1, low=1, high=64, doc="rounds that players remember")


class MatrixGame(EnvDef):
    """Players choose a move at the same time, again and again; a table says what each of them gets.

    | `game` | moves | payoffs of the first player |
    |---|---|---|
    | `prisoners_dilemma` | cooperate, defect | 3, 0; 5, 1 |
    | `stag_hunt` | stag, hare | 4, 1; 3, 2 |
    | `chicken` | swerve, straight | 0, -1; 1, -10 |
    | `matching_pennies` | heads, tails | 1, -1; -1, 1: the second player gets the opposite |
    | `rock_paper_scissors` | rock, paper, scissors, ... | 1 for a win, -1 for a loss |

    A row of the payoffs is a move of the player itself, a column one of the other; all but matching pennies are
    symmetric. The prisoner's dilemma is Axelrod's (1980). Of `num_actions` moves of rock-paper-scissors each beats half
    of the others: of two moves with the same parity the lower one wins, of two others the higher one, as in PettingZoo.

    `MatrixGame.of` makes a game of any other payoffs, for any number of players.

    **Agents.** `player_0`, `player_1`, ...

    **Actions.** `Discrete(n)`: the move.

    **Observation.** `MultiDiscrete`: the moves of the last `memory` rounds, the latest first; of each
    round one's own move, then those of the others in order, beginning with the next player. The value
    n stands for a round that was not played yet.

    **Reward.** The payoff of each round.

    **End.** Never: there is a time limit of 100 rounds.
    """

    id = "MatrixGame-v0"
    Config = MatrixGameConfig
    max_episode_steps = 100
    reference = "pettingzoo rps_v2"
    interaction = "mixed"
    links: ClassVar[Mapping[str, str]] = {
        "PettingZoo": "https://pettingzoo.farama.org/environments/classic/rps/",
    }
    render_fps = 2
    #: payoffs of a game that was made by `of`
    payoffs: ClassVar[NDArray[np.float32] | None] = None

    @classmethod
    def of(cls, payoffs: ArrayLike, id: str = "CustomMatrixGame-v0") -> type[MatrixGame]:
        """A game with other payoffs, for `gpuzoo.make` and all others; its ``game`` has no effect.

        Args:
            payoffs: (n, ..., n, players): one axis of n moves for each player, then what each of them gets.
            id: its name.

        Raises:
            ValueError: another shape, or payoffs that are not finite.
        """
        table = np.array(payoffs, np.float32)
        players = table.ndim - 1
        if players < 2 or table.shape[-1] != players or len(set(table.shape[:-1])) != 1 or table.shape[0] < 2:
            raise ValueError(
                f"payoffs must have the shape (n, ..., n, players) with n >= 2 moves for each of at least two players, "
                f"not {table.shape}: give a player with fewer moves the same payoffs for several of them."
            )
        if not np.isfinite(table).all():
            raise ValueError("payoffs must be finite.")
        return type(id.split("-")[0], (cls,), {"__doc__": cls.__doc__, "__module__": cls.__module__, "id": id,
                                               "payoffs": table})  # fmt: skip

    def _table(self, cfg: MatrixGameConfig) -> NDArray[np.float32]:
        return payoffs_of(cfg.game, cfg.num_actions) if self.payoffs is None else self.payoffs

    def check(self, cfg: MatrixGameConfig) -> None:
        if cfg.num_actions % 2 == 0:
            raise ValueError(
                f"{self.id}: num_actions must be odd, not {cfg.num_actions}: each beats half of the others."
            )

    def agents(self, cfg: MatrixGameConfig) -> dict[str, int]:
        return {"player": self._table(cfg).ndim - 1}

    def observation_space(self, cfg: MatrixGameConfig, group: str) -> spaces.MultiDiscrete:
        table = self._table(cfg)
        return spaces.MultiDiscrete([len(table) + 1] * ((table.ndim - 1) * cfg.memory))

    def action_space(self, cfg: MatrixGameConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(len(self._table(cfg)))

    def observation_names(self, cfg: MatrixGameConfig, group: str) -> dict[str, int]:
        players = self._table(cfg).ndim - 1
        names: dict[str, int] = {}
        for k in range(cfg.memory):
            ago = "in the last round" if k == 0 else f"{k + 1} rounds ago"
            others = [f"move of the player {j + 1} places on, {ago}" for j in range(players - 1)]
            names |= dict.fromkeys([f"own move {ago}", *others], 1)
        return names

    def action_names(self, cfg: MatrixGameConfig, group: str) -> dict[str, int]:
        return {f"move {k}": 1 for k in range(len(self._table(cfg)))}

    def fields(self, cfg: MatrixGameConfig) -> dict[str, Field]:
        return {"moves": Field("int32", ("memory", "agents"), doc="the last rounds, the latest first; n: not played")}

    def constants(self, cfg: MatrixGameConfig) -> dict[str, int]:
        return {"MOVES": len(self._table(cfg))}

    def tables(self, cfg: MatrixGameConfig) -> dict[str, NDArray[Any]]:
        return {"payoff": self._table(cfg).ravel()}

    def render(self, cfg: MatrixGameConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        table = self._table(cfg)
        n, players = len(table), table.ndim - 1
        last = [int(m) for m in state["moves"][0]]
        played = max(last) < n
        known = MOVES[cfg.game] if self.payoffs is None else ()
        names = [known[k] if k < len(known) else f"move {k}" for k in range(n)]
        canvas.background("paper")
        if players == 2 and n <= 9:
            canvas.view(-0.9, -0.6, n + 0.1, n + 0.1, y_down=True, hud=True)
            for row in range(n):
                for column in range(n):
                    here = played and last == [row, column]
                    canvas.rect(column, row, column + 1, row + 1, fill="#f2c14b60" if here else "white", outline="line")
                    for k, place in enumerate((0.3, 0.7)):
                        text = f"{table[row, column, k]:g}"
                        canvas.text(column + place, row + (0.7, 0.3)[k], text, size=15, colour=CYCLE[k], bold=here)
                canvas.text(-0.45, row + 0.5, names[row], size=10, colour=CYCLE[0])
                canvas.text(row + 0.5, -0.25, names[row], size=10, colour=CYCLE[1])
        else:
            canvas.view(0, 0, players, players, y_down=True, hud=True)
            for k in range(players):
                canvas.circle(k + 0.5, players / 2, 0.4, fill=fade(CYCLE[k % len(CYCLE)], 0.6 if played else 0.2))
                canvas.text(k + 0.5, players / 2, names[last[k]] if played else "-", size=10)
        gains = table[tuple(last)] if played else np.zeros(players)
        moves = " / ".join(names[m] for m in last) if played else "no round yet"
        score = ", ".join(f"{g:g}" for g in gains)
        title = cfg.game.replace("_", " ") if self.payoffs is None else type(self).__name__
        canvas.hud(left=f"{title}: {moves}", right=f"{score}   round {int(state['elapsed_steps'])}")
