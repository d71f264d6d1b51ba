"""What Harvest and Cleanup share: the map, agents, beams, spaces, rewards and the picture."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import CYCLE, Canvas, fade, mix

#: what a cell holds
EMPTY, BORDER, APPLE, WASTE, RIVER, STREAM, OUTSIDE = range(7)
FINES, CLEANS = 1, 2
ACTIONS = ("left", "right", "ahead", "back", "stay", "turn right", "turn left", "fine", "clean")
OTHERS = tuple(f"another agent that looks {way}" for way in ("the same way", "to the right", "back", "to the left"))


#: planes of a view: what must be in a cell, or which beam
CONTENTS = {
    "wall": BORDER, "apple": APPLE, "waste": WASTE, "river": RIVER, "stream": STREAM, "outside of the map": OUTSIDE,
}  # fmt: skip
BEAMS = {"fining beam": FINES, "cleaning beam": CLEANS}


@dataclasses.dataclass(frozen=True)
class GridConfig(Config):
    """Agents, what they see, beams and rewards."""

    num_agents: int = param(5, low=1, high=64, doc="agents")
    view_len: int = param(7, low=1, high=31, doc="cells that an agent sees on each side of it")
    upright_views: bool = param(False, doc="agents always look upwards in their views; in the original some look down")
    beam_length: int = param(5, low=1, high=100, doc="cells that a beam reaches")
    fine: float = param(50.0, doc="what an agent loses that a fining beam hits")
    fire_cost: float = param(1.0, doc="what a fining beam costs")
    use_collective_reward: bool = param(False, doc="everybody gets the sum of all rewards")
    inequity_averse_reward: Literal["no", "hughes", "original"] = param(
        "no", doc="agents dislike inequity: as in Hughes et al., or as in the original"
    )
    alpha: float = param(5.0, doc="how much an agent dislikes that others have more")
    beta: float = param(0.05, doc="how much an agent dislikes that others have less")
    inequity_decay: float = param(0.975, low=0.0, high=1.0, doc="what is left of smoothed rewards after a step")


class Grid(EnvDef):
    """Agents who walk on a map, pick apples, and have beams."""

    #: what the letters of a map stand for; ``P`` is where agents begin
    letters: ClassVar[Mapping[str, int]] = {" ": EMPTY, "@": BORDER, "P": EMPTY}
    #: where apples grow
    orchard: ClassVar[str]
    actions: ClassVar[int]
    planes: ClassVar[tuple[str, ...]]
    interaction = "mixed"
    max_episode_steps = 1000
    invalid_action = 4
    links: ClassVar[Mapping[str, str]] = {
        "Original": "https://github.com/eugenevinitsky/sequential_social_dilemma_games",
        "Leibo et al. 2017": "https://arxiv.org/abs/1702.03037",
        "Hughes et al. 2018": "https://arxiv.org/abs/1803.08884",
    }
    render_fps = 8

    @classmethod
    def parameters_of(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        averse = options.get("inequity_averse_reward")
        if not isinstance(averse, bool):
            return options
        return {**options, "inequity_averse_reward": "original" if averse else "no"}

    def agents(self, cfg: Any) -> dict[str, int]:
        return {"agent": cfg.num_agents}

    def lanes(self, cfg: Any) -> int:
        return 64 if cfg.num_agents <= 8 else 128

    def letters_of(self, cfg: Any) -> NDArray[np.str_]:
        """The map's letters, (rows, columns)."""
        lines = cfg.ascii_map.strip("\n").split("\n")
        return np.array([list(line) for line in lines]) if len({len(line) for line in lines}) == 1 else np.array([[]])

    def check(self, cfg: Any) -> None:
        letters = self.letters_of(cfg)
        if letters.size == 0:
            raise ValueError(f"{self.id}: all lines of ascii_map must have the same length, which is not 0.")
        if unknown := sorted(set(letters.ravel().tolist()) - set(self.letters)):
            known = ", ".join(map(repr, self.letters))
            raise ValueError(f"{self.id}: ascii_map has {unknown[0]!r}; it may have {known}.")
        if (starts := int((letters == "P").sum())) < cfg.num_agents:
            raise ValueError(f"{self.id}: ascii_map has {starts} places to begin ('P') for {cfg.num_agents} agents.")
        if cfg.inequity_averse_reward != "no" and cfg.num_agents == 1:
            raise ValueError(f"{self.id}: inequity_averse_reward needs two agents.")

    def observation_space(self, cfg: Any, group: str) -> spaces.Box:
        side = 2 * cfg.view_len + 1
        return spaces.Box(0, 1, (side, side, len(self.planes)), np.int8)

    def action_space(self, cfg: Any, group: str) -> spaces.Discrete:
        return spaces.Discrete(self.actions)

    def observation_names(self, cfg: Any, group: str) -> dict[str, int]:
        return dict.fromkeys(self.planes, 1)

    def action_names(self, cfg: Any, group: str) -> dict[str, int]:
        return dict.fromkeys(ACTIONS[: self.actions], 1)

    def places(self, cfg: Any, letters: str) -> list[int]:
        """Cells with one of these letters, row by row."""
        stride = self.letters_of(cfg).shape[1] + 2 * cfg.view_len
        found = np.argwhere(np.isin(self.letters_of(cfg), list(letters))) + cfg.view_len
        return [int(row * stride + column) for row, column in found]

    def constants(self, cfg: Any) -> dict[str, int]:
        rows, columns = self.letters_of(cfg).shape
        margin = cfg.view_len
        return {
            "STRIDE": columns + 2 * margin,
            "CELLS": (rows + 2 * margin) * (columns + 2 * margin),
            "VIEW": margin,
            "SIDE": 2 * margin + 1,
            "WORDS": len(self.planes) // 4,
            "AGENT_WORD": self.planes.index(OTHERS[0]) // 4,
            "CAN_CLEAN": int("cleaning beam" in self.planes),
            "STARTS": len(self.places(cfg, "P")),
        }

    def tables(self, cfg: Any) -> dict[str, NDArray[Any]]:
        known = np.vectorize(self.letters.__getitem__)(self.letters_of(cfg))
        plan = np.pad(known, cfg.view_len, constant_values=OUTSIDE).astype(np.uint8)
        facing, agent, beams, content = np.indices((4, 5, 4, 8))  # agent: 0 for none, else one more than where it looks
        look = np.zeros((4, 5, 4, 8, len(self.planes)), np.uint8)
        for k, name in enumerate(self.planes):
            if name in CONTENTS:
                look[..., k] = content == CONTENTS[name]
            elif name in BEAMS:
                look[..., k] = beams & BEAMS[name] != 0
            else:
                look[..., k] = (agent > 0) & ((agent - 1 - facing) % 4 == OTHERS.index(name))
        return {
            "plan": plan.ravel(),
            "start": np.array(self.places(cfg, "P"), np.int32),
            "look": look.view("<u4").astype(np.uint32).ravel(),
        }

    def fields(self, cfg: Any) -> dict[str, Field]:
        content = "0 nothing, 1 wall, 2 apple, 3 waste, 4 river, 5 stream, 6 outside of the map"
        return {
            "cells": Field("uint8", ("CELLS",), f"what is in each cell of the map and its margin: {content}"),
            "beams": Field("uint8", ("CELLS",), "beams of the last step: 1 fining, 2 cleaning, 3 both"),
            "place": Field("int32", ("agents",), "cell of each agent, in the map with its margin"),
            "facing": Field("int32", ("agents",), "where each agent looks: 0 up, 1 right, 2 down, 3 left"),
            "smooth": Field("float32", ("agents",), "sum of its rewards, of which each step leaves inequity_decay"),
            "wish": Field("int32", ("agents",), "cell that it wants, or -1", scratch=True),
            "target": Field("int32", ("agents",), "cell that it still wants, or -1", scratch=True),
            "seat": Field("int32", ("agents",), "cell where it was seen", scratch=True),
            "wants": Field("bool", ("agents",), "whether it wanted a cell when it was seen", scratch=True),
            "hits": Field("int32", ("agents",), "fining beams that hit it", scratch=True),
            "earned": Field("float32", ("agents",), "reward of this step", scratch=True),
            "taken": Field("bool", ("STARTS",), "whether somebody begins there", scratch=True),
            "top": Field("int8", ("CELLS",), "who is seen on each cell, or -1", scratch=True),
            "shown": Field("uint8", ("CELLS",), "what is seen of each cell", scratch=True),
            "here": Field("int8", ("CELLS",), "agents on each cell", scratch=True),
            "wanted": Field("int8", ("CELLS",), "agents that want it", scratch=True),
        }

    # ---- the picture ----

    def aspect(self, cfg: Any) -> float:
        rows, columns = self.letters_of(cfg).shape
        return float(columns / (rows + 1.2))

    def side(self, cfg: Any) -> int:
        return 720

    def render(self, cfg: Any, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        rows, columns = self.letters_of(cfg).shape
        margin, stride = cfg.view_len, columns + 2 * cfg.view_len

        def inside(name: str) -> NDArray[Any]:
            return np.asarray(state[name]).reshape(-1, stride)[margin:-margin, margin:-margin]

        cells, beams = inside("cells"), inside("beams")
        canvas.background("ink")
        canvas.view(0, 0, columns, rows, y_down=True, hud=True)
        canvas.cached(_ground, columns, rows)
        for y, x in np.argwhere(self.letters_of(cfg) == self.orchard).tolist():
            canvas.cached(_tree, x, y)
        for content, draw in ((BORDER, _wall), (RIVER, _river), (STREAM, _stream), (WASTE, _waste), (APPLE, _apple)):
            for y, x in np.argwhere(cells == content).tolist():
                canvas.cached(draw, x, y)
        for beam, colour in ((FINES, "yellow"), (CLEANS, "water")):
            for y, x in np.argwhere(beams & beam != 0).tolist():
                canvas.rect(x + 0.06, y + 0.06, x + 0.94, y + 0.94, fill=fade(colour, 0.65), radius=0.2)
        for a, (place, facing) in enumerate(zip(state["place"].tolist(), state["facing"].tolist(), strict=True)):
            y, x = divmod(int(place), stride)
            _agent(canvas, x - margin + 0.5, y - margin + 0.5, int(facing), CYCLE[a % len(CYCLE)])
        counts = [("apples", APPLE)] + [("waste", WASTE)] * (WASTE in self.letters.values())
        right = "   ".join(f"{name} {int((cells == content).sum())}" for name, content in counts)
        canvas.hud(left=self.id, right=f"{right}   step {int(state['elapsed_steps'])}")


def _ground(canvas: Canvas, columns: int, rows: int) -> None:
    canvas.rect(0, 0, columns, rows, fill="#3f6b3c")
    for y in range(rows):
        for x in range(columns):
            if (x + y) % 2:
                canvas.rect(x, y, x + 1, y + 1, fill="#43723f")


def _tree(canvas: Canvas, x: int, y: int) -> None:
    canvas.circles([(x + 0.35, y + 0.55), (x + 0.65, y + 0.55), (x + 0.5, y + 0.38)], 0.2, "#5a8f52")


def _wall(canvas: Canvas, x: int, y: int) -> None:
    canvas.rect(x, y, x + 1, y + 1, fill="slate")
    canvas.rect(x + 0.08, y + 0.08, x + 0.92, y + 0.92, fill=mix("slate", "white", 0.15), radius=0.12)


def _river(canvas: Canvas, x: int, y: int) -> None:
    canvas.rect(x, y, x + 1, y + 1, fill="#3b82b8")
    for k in (0.3, 0.7):
        canvas.line(x + 0.15, y + k, x + 0.6, y + k, colour="#6fb0dc", width=0.8)


def _stream(canvas: Canvas, x: int, y: int) -> None:
    canvas.rect(x, y, x + 1, y + 1, fill="#5b9fce")
    canvas.line(x + 0.2, y + 0.5, x + 0.8, y + 0.5, colour="#a5d3ee", width=0.8)


def _waste(canvas: Canvas, x: int, y: int) -> None:
    canvas.rect(x, y, x + 1, y + 1, fill="#6b5a35")
    canvas.circles([(x + 0.3, y + 0.35), (x + 0.68, y + 0.3), (x + 0.5, y + 0.7)], [0.17, 0.12, 0.2], "#8d7a45")


def _apple(canvas: Canvas, x: int, y: int) -> None:
    canvas.circle(x + 0.53, y + 0.57, 0.3, fill="#1f293750")
    canvas.circle(x + 0.5, y + 0.53, 0.28, fill="red")
    canvas.circle(x + 0.41, y + 0.44, 0.08, fill="#ffffff90")
    canvas.line(x + 0.5, y + 0.3, x + 0.58, y + 0.14, colour="brown", width=1)


def _agent(canvas: Canvas, x: float, y: float, facing: int, colour: str) -> None:
    canvas.circle(x, y, 0.48, fill=fade("white", 0.75))
    canvas.dart(x, y, math.pi / 2 * (facing - 1), 0.42, fill=colour)
