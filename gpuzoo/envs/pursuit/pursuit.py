"""Pursuit."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas, fade, mix


@dataclasses.dataclass(frozen=True)
class PursuitConfig(Config):
    """The board, who is on it, what a catch is, and what it is worth."""

    x_size: int = param(16, low=1, high=128, doc="columns of the board")
    y_size: int = param(16, low=1, high=128, doc="rows of the board")
    n_evaders: int = param(30, low=1, high=255, doc="evaders at the start of an episode")
    n_pursuers: int = param(8, low=1, high=255, doc="pursuers")
    obs_range: int = param(7, low=1, high=99, doc="side of the square that a pursuer sees, itself in the middle")
    surround: bool = param(True, doc="an evader is caught when surrounded, or else when n_catch stand on its cell")
    n_catch: int = param(2, low=0, doc="pursuers on an evader's cell that catch it, without `surround`")
    shared_reward: bool = param(True, doc="everybody gets the mean of the rewards")
    freeze_evaders: bool = param(False, doc="evaders never move")
    tag_reward: float = param(0.01, doc="reward for an evader beside a pursuer")
    catch_reward: float = param(5.0, doc="reward of every pursuer that takes part in a catch")
    urgency_reward: float = param(-0.1, doc="reward of every step")
    constraint_window: float = param(
        1.0, low=0.0, high=1.0, doc="side of the window in which all begin, as a part of the board's"
    )


def _building(size: int, kept: float) -> tuple[int, int]:
    """First cell of the building along one side, and the one behind its last."""
    cells = [k for k in range(size) if kept < k / size < 1.0 - kept]
    return (cells[0], cells[-1] + 1) if cells else (0, 0)


def _draw_field(canvas: Canvas, columns: int, rows: int, building: tuple[int, int, int, int]) -> None:
    left, low, right, high = building
    canvas.rect(0, 0, columns, rows, fill="grass")
    canvas.grid(columns, rows, colour=fade("white", 0.75))
    if right > left and high > low:
        canvas.rect(left, low, right, high, fill="slate", radius=0.35)
        canvas.rect(left + 0.2, low + 0.2, right - 0.2, high - 0.2, fill=mix("slate", "white", 0.16), radius=0.25)


def _draw_sight(canvas: Canvas, x: int, y: int, sight: int, columns: int, rows: int) -> None:
    near, far = (max(x - sight, 0), max(y - sight, 0)), (min(x + sight + 1, columns), min(y + sight + 1, rows))
    canvas.rect(*near, *far, fill=fade("yellow", 0.13), radius=0.3)


def _draw_evaders(canvas: Canvas, x: int, y: int, count: int, hunted: bool) -> None:
    canvas.circle(x + 0.5, y + 0.5, 0.33, fill="purple" if hunted else "blue", outline="white", width=1)
    if count > 1:
        canvas.text(x + 0.5, y + 0.5, str(count), colour="white", height=0.42, bold=True)
    else:
        canvas.circles([(x + 0.39, y + 0.45), (x + 0.61, y + 0.45)], 0.07, "white")


def _draw_pursuers(canvas: Canvas, x: int, y: int, count: int) -> None:
    canvas.rect(x + 0.12, y + 0.12, x + 0.88, y + 0.88, fill="red", outline="white", width=1.2, radius=0.24)
    if count > 1:
        canvas.text(x + 0.5, y + 0.5, str(count), colour="white", height=0.42, bold=True)
    else:
        canvas.rect(x + 0.34, y + 0.64, x + 0.66, y + 0.72, fill="white")
        canvas.circles([(x + 0.37, y + 0.42), (x + 0.63, y + 0.42)], 0.09, "white")


class Pursuit(EnvDef):
    """Pursuers hunt evaders that walk at random around a building; they must surround one to catch it.

    The board has `x_size` columns and `y_size` rows. In its middle is a building, which nobody can enter: the columns
    x with 0.3 < x / x_size < 0.7 in the rows y with 0.2 < y / y_size < 0.8. Any number may share a cell. Gupta, Egorov
    and Kochenderfer, "Cooperative Multi-Agent Control Using Deep Reinforcement Learning" (2017); these are the rules of
    PettingZoo's `sisl.pursuit_v5` as a user of its parallel interface sees them.

    **Agents.** `pursuer_0`, `pursuer_1`, ... Evaders are part of the game.

    **Start.** Cells outside of the building, drawn for one after another from a window of `constraint_window` times the
    board's sides, which lies anywhere on the board. No pursuer begins on or beside another's cell, and no evader on or
    beside another evader's; a pursuer and an evader may be neighbours. An evader that finds no such cell in 200 draws
    takes the next such cell on the board, or, if there is none, the next one outside of the building.

    **Actions.** `Discrete(5)`: x - 1, x + 1, y + 1, y - 1, stay. A move off the board or into the building does
    nothing. An action out of range means to stay. Pursuers move in order, which matters for the reward alone.

    **Catch.** When all pursuers have moved. With `surround` an evader is caught when all cells beside it that are on
    the board and outside of the building have a pursuer; without, when `n_catch` pursuers are on its cell. It leaves
    the game. Then each of the others makes one of the five moves at random, unless `freeze_evaders`.

    **Observation.** `Box(0, max(n_pursuers, n_evaders), (obs_range, obs_range, 3))`: for each y, x and plane from
    (obs_range - 1) // 2 cells before the pursuer on: whether there is the building or no board; the number of pursuers,
    itself included; the number of evaders.

    **Reward.** `urgency_reward` in every step; `catch_reward`, once, for a pursuer who was beside a caught evader
    (without `surround`: on its cell); and `tag_reward` times the number of evaders beside the pursuer. That number is
    a mean over the n moves of the step: pursuer i is in its old place for i of them and in the new one for the
    other n - i, while no evader has moved. With `shared_reward` everybody gets the mean over all pursuers.

    **End.** All evaders are caught: termination, unless it is the last step of the time limit, 500 steps, which is
    truncation alone.

    The original's oddities, which are kept:

    - At the border, the cell of the pursuer counts in place of the cell beyond it: an evader there is tagged, in a
      corner twice.
    - A pursuer beside two evaders that are caught gets one `catch_reward`.
    - With an even `obs_range` the last row and the last column of an observation are always wall.
    - On a board of one column or one row, nobody can be surrounded: one side too many is wanted.

    Differences: `max_cycles` is `max_episode_steps`. Where the window has no cell that is left, or none at all,
    the original runs for ever or raises an error. Its moves of evaders can be replaced by a controller in Python; these
    cannot. The original's reward is computed in float64.
    """

    id = "Pursuit-v0"
    Config = PursuitConfig
    max_episode_steps = 500
    invalid_action = 4
    reference = "pettingzoo==1.27.0 sisl.pursuit_v5"
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {
        "PettingZoo": "https://pettingzoo.farama.org/environments/sisl/pursuit/",
        "Gupta et al. 2017": "https://doi.org/10.1007/978-3-319-71682-4_5",
    }
    benchmarks = {
        "n_catch=1": {"surround": False, "n_catch": 1},
        "64x64, 64 pursuers": {"x_size": 64, "y_size": 64, "n_pursuers": 64, "n_evaders": 200},
    }
    render_fps = 5

    def agents(self, cfg: PursuitConfig) -> dict[str, int]:
        return {"pursuer": cfg.n_pursuers}

    def lanes(self, cfg: PursuitConfig) -> int:
        return 32

    def observation_space(self, cfg: PursuitConfig, group: str) -> spaces.Box:
        most = max(cfg.n_pursuers, cfg.n_evaders)
        return spaces.Box(0.0, float(most), (cfg.obs_range, cfg.obs_range, 3), np.float32)

    def action_space(self, cfg: PursuitConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(5)

    def constants(self, cfg: PursuitConfig) -> dict[str, int]:
        sight = (cfg.obs_range - 1) // 2
        margin = max(sight, 1)
        (left, right), (low, high) = _building(cfg.x_size, 0.3), _building(cfg.y_size, 0.2)
        return {
            "SIGHT": sight,
            "MARGIN": margin,
            "BOARD_COLUMNS": cfg.x_size + 2 * margin,
            "BOARD_SIZE": 3 * (cfg.x_size + 2 * margin) * (cfg.y_size + 2 * margin),
            "BUILDING_LEFT": left,
            "BUILDING_RIGHT": right,
            "BUILDING_LOW": low,
            "BUILDING_HIGH": high,
        }

    def tables(self, cfg: PursuitConfig) -> dict[str, NDArray[Any]]:
        known = self.constants(cfg)
        margin = known["MARGIN"]
        board = np.zeros((cfg.y_size + 2 * margin, cfg.x_size + 2 * margin, 3), np.uint8)
        board[..., 0] = 1
        inner = board[margin:-margin, margin:-margin, 0]
        inner[...] = 0
        inner[known["BUILDING_LOW"] : known["BUILDING_HIGH"], known["BUILDING_LEFT"] : known["BUILDING_RIGHT"]] = 1
        return {"empty_board": board.ravel()}

    def observation_names(self, cfg: PursuitConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("walls", "pursuers, itself included", "evaders"), 1)

    def action_names(self, cfg: PursuitConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("x - 1", "x + 1", "y + 1", "y - 1", "stay"), 1)

    def fields(self, cfg: PursuitConfig) -> dict[str, Field]:
        return {
            "pursuer_x": Field("int32", ("pursuers",), "column"),
            "pursuer_y": Field("int32", ("pursuers",), "row"),
            "evader_x": Field("int32", ("n_evaders",), "column; -1 once it is caught"),
            "evader_y": Field("int32", ("n_evaders",), "row; -1 once it is caught"),
            "way": Field("int32", ("n_evaders",), "its move of the last step"),
            "caught": Field("int32", ("n_evaders",), "whether it was caught in the last step"),
            "catcher": Field("int32", ("pursuers",), "whether it took part in a catch in the last step"),
            "tags": Field("int32", ("pursuers",), "evaders beside it, summed over the moves of the last step"),
            "board": Field(
                "uint8", ("BOARD_SIZE",), "what was observed last: planes of the whole board, with a margin"
            ),
        }

    def render(self, cfg: PursuitConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        known = self.constants(cfg)
        xs, ys, sight = cfg.x_size, cfg.y_size, known["SIGHT"]
        pursuers = np.stack([state["pursuer_x"], state["pursuer_y"]], 1).astype(int)
        evaders = np.stack([state["evader_x"], state["evader_y"]], 1).astype(int)
        evaders = evaders[evaders[:, 0] >= 0]
        catcher = np.asarray(state["catcher"], bool)
        canvas.background("paper")
        canvas.view(0, 0, xs, ys, y_down=True, pad=8, hud=True)
        building = (known["BUILDING_LEFT"], known["BUILDING_LOW"], known["BUILDING_RIGHT"], known["BUILDING_HIGH"])
        canvas.cached(_draw_field, xs, ys, building)
        for x, y in pursuers.tolist():
            canvas.cached(_draw_sight, x, y, sight, xs, ys)
        for x, y in pursuers[catcher].tolist():
            canvas.circle(x + 0.5, y + 0.5, 0.75, fill=fade("orange", 0.45))
        cells = collections.Counter(map(tuple, pursuers.tolist()))
        for (x, y), count in sorted(collections.Counter(map(tuple, evaders.tolist())).items()):
            hunted = any(cell in cells for cell in ((x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)))
            canvas.cached(_draw_evaders, x, y, count, hunted)
        for (x, y), count in sorted(cells.items()):
            canvas.cached(_draw_pursuers, x, y, count)
        canvas.hud(
            left="Pursuit",
            right=f"caught {cfg.n_evaders - len(evaders)} of {cfg.n_evaders}   step {int(state['elapsed_steps'])}",
        )
