"""Records transitions of Harvest and Cleanup as Vinitsky et al. wrote them, which is on no package index.

    git clone https://github.com/eugenevinitsky/sequential_social_dilemma_games CHECKOUT
    python tests/reference/record_social_dilemmas.py CHECKOUT

in the environment of this project's tests writes ``social_dilemmas.npz``. The recorded code is that of commit 0207821
(MIT licence). Nothing of it is copied here: the script only calls it. It imports gym, ray, OpenCV and matplotlib, for
spaces, base classes and windows alone; empty modules stand in for them.

The original draws from NumPy's global generator. Here it gets the numbers that this project's engine draws
(``tests/draws.py``): the order in which agents get contested cells, the order of their beams, the growth of each apple,
the place of new waste. Envs of a case begin in states drawn widely, or by a reset of ours, and then
run by themselves.

Keys are ``<game>/<case>/<array>``. ``config`` is JSON: the parameters of our game. With T steps of K envs of N agents:

=====================================  ============================================================
``cells place facing elapsed_steps``   the first state, (K, ...), as fields of our game
``actions``                            uint8 (T, K, N)
``next_cells next_place next_facing``  after each step, (T, K, ...), with the margin that ours has
``next_beams``                         uint8 (T, K, cells): 1 fining, 2 cleaning
``rewards``                            float64 (T, K, N)
``views``                              uint8 (T, K, N, side, side), from colours: 0 black, 1 wall, 2 apple, 3 waste,
                                       4 river or stream, 5 an agent
=====================================  ============================================================

Of 1,000 whole episodes of each game, which begin by a reset of ours, there are only digests: ``<game>/episodes/<case>``
is uint8 (K, 8), of all that is above but actions, by ``digests.py``.
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from draws import bits, integers, units  # noqa: E402
from reference.digests import ACTIONS, EPISODES, LENGTH, Digests  # noqa: E402

import gpuzoo  # noqa: E402
from gpuzoo import Simulator  # noqa: E402

#: draws of our rules
MOVE_ORDER, BEAM_ORDER, _, _, GROW, SPOIL, WHERE = range(7)
FACINGS = ("UP", "RIGHT", "DOWN", "LEFT")
LETTERS = {b" ": 0, b"@": 1, b"A": 2, b"H": 3, b"R": 4, b"S": 5}
COLOURS = {(0, 0, 0): 0, (180, 180, 180): 1, (0, 255, 0): 2, (99, 156, 194): 3, (113, 75, 24): 4}

ARENA = """
@@@@@@@@@
@PPA AP @
@PAAA P @
@PPA APP@
@  P  P @
@@@@@@@@@
"""
OPEN = """
PAP A
AAPP
 PPAA
"""
OPEN = "\n".join(line.ljust(5) for line in OPEN.strip("\n").split("\n"))
BANK = """
@@@@@@@@@@
@HRHSPBBB@
@HHRSPPBB@
@RHHS PBB@
@RRHPPPBB@
@HRRSPPBB@
@@@@@@@@@@
"""

AVERSE, COLLECTIVE = {"inequity_averse_reward": "original"}, {"use_collective_reward": True}

#: game -> case -> (parameters, envs, steps, whether ours begins by a reset)
CASES: dict[str, dict[str, tuple[dict[str, Any], int, int, bool]]] = {
    "Harvest-v0": {
        "default": ({}, 3, 60, True),
        "nine": ({"num_agents": 9, "ascii_map": ARENA}, 40, 6, False),
        "open": ({"num_agents": 6, "ascii_map": OPEN, "beam_length": 3}, 40, 6, False),
        "averse": ({"num_agents": 5, "ascii_map": ARENA, **AVERSE}, 20, 6, False),
        "collective": ({"num_agents": 3, "ascii_map": ARENA, "view_len": 2, **COLLECTIVE}, 20, 6, False),
        "alone": ({"num_agents": 1, "ascii_map": ARENA, "view_len": 3}, 10, 10, True),
    },
    "Cleanup-v0": {
        "default": ({}, 3, 60, True),
        "nine": ({"num_agents": 9, "ascii_map": BANK}, 40, 6, False),
        "averse": ({"num_agents": 4, "ascii_map": BANK, "alpha": 0.5, **AVERSE}, 20, 6, False),
        "small view": ({"num_agents": 7, "ascii_map": BANK, "view_len": 2, "beam_length": 4}, 20, 6, False),
    },
}  # fmt: skip


def stand_in(checkout: str) -> None:
    """Empty modules for what the original imports and does not use here."""

    class Space:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            pass

    def module(name: str, **content: Any) -> None:
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(content)

    module("gym", spaces=None)
    module("gym.spaces", Box=Space, Dict=Space, Discrete=Space)
    module("ray")
    module("ray.rllib")
    module("ray.rllib.agents")
    module("ray.rllib.agents.callbacks", DefaultCallbacks=object)
    module("ray.rllib.env", MultiAgentEnv=object)
    module("matplotlib")
    module("matplotlib.pyplot")
    module("cv2")
    sys.path.insert(0, checkout)


class Draws:
    """What ours draws in the next step, for all envs: (numbers, envs) each."""

    def __init__(self, sim: Simulator, apples: int, waste: int) -> None:
        n = sim.cfg.num_agents
        self.move_order, self.beam_order = (
            np.stack([bits(sim, draw, agent=a) for a in range(n)]) for draw in (MOVE_ORDER, BEAM_ORDER)
        )
        self.growth = np.stack([units(sim, GROW, agent=n + i) for i in range(apples)])
        if sim.env.id == "Cleanup-v0":
            self.spoils = units(sim, SPOIL)
            self.where = np.stack([integers(sim, WHERE, m) for m in range(1, waste + 1)])


def draws_for(twins: list[Twin]) -> Draws:
    env = twins[0].env
    return Draws(twins[0].sim, len(env.apple_points), len(getattr(env, "waste_points", ())))


class Twin:
    """One env of the original beside env k of ours."""

    def __init__(self, sim: Simulator, k: int) -> None:
        from social_dilemmas.envs import cleanup, harvest  # type: ignore[import-not-found]

        self.sim, self.k, self.cfg = sim, k, sim.cfg
        self.game = cleanup if sim.env.id == "Cleanup-v0" else harvest
        name = "CleanupEnv" if sim.env.id == "Cleanup-v0" else "HarvestEnv"
        setattr(self.game, name.replace("Env", "").upper() + "_VIEW_SIZE", self.cfg.view_len)
        lines = self.cfg.ascii_map.strip("\n").split("\n")
        self.shape = len(lines), len(lines[0])
        averse = self.cfg.inequity_averse_reward == "original"
        self.env = getattr(self.game, name)(
            lines, self.cfg.num_agents, use_collective_reward=self.cfg.use_collective_reward,
            inequity_averse_reward=averse, alpha=np.float32(self.cfg.alpha), beta=np.float32(self.cfg.beta),
        )  # fmt: skip
        self.env.reset()
        self.env.all_actions["FIRE"] = self.cfg.beam_length
        self.inject()

    def inject(self) -> None:
        s, margin = self.sim.arrays, self.cfg.view_len
        stride = self.shape[1] + 2 * margin
        cells = s["cells"][self.k].reshape(-1, stride)[margin:-margin, margin:-margin]
        letters = {code: letter for letter, code in LETTERS.items()}
        for (row, column), code in np.ndenumerate(cells):
            self.env.single_update_map(row, column, letters[int(code)])
        for a, agent in enumerate(self.env.agents.values()):
            agent.pos = np.array(divmod(int(s["place"][self.k, a]), stride)) - margin
            agent.orientation = FACINGS[int(s["facing"][self.k, a])]
        for agent in self.env.agents.values():
            agent.full_map = self.env.get_map_with_agents()

    def prepare(self, draws: Draws) -> None:
        """Takes our draws of the next step."""
        self.move_order, self.beam_order, self.growth = (
            x[:, self.k].tolist() for x in (draws.move_order, draws.beam_order, draws.growth)
        )
        if self.sim.env.id == "Cleanup-v0":
            self.spoils, self.where = float(draws.spoils[self.k]), draws.where[:, self.k].tolist()

    def clean_points(self) -> list[list[int]]:
        return sorted(point for point in self.env.waste_points if self.env.world_map[tuple(point)] != b"H")

    def rand(self, count: int) -> np.ndarray:
        """The original's numbers: for each apple that may grow in turn, and then for waste."""
        standing = self.env.agent_pos
        free = [
            u for u, point in zip(self.growth, self.env.apple_points, strict=True)
            if point not in standing and self.env.world_map[tuple(point)] != b"A"
        ]  # fmt: skip
        numbers = np.ones(count)
        numbers[: len(free)] = free
        if self.sim.env.id == "Cleanup-v0" and len(free) < count:
            none = np.float32(1 - self.cfg.waste_spawn_probability) ** len(self.clean_points())
            numbers[len(free)] = 0.0 if self.spoils >= none else 1.0
        return numbers

    def shuffle(self, items: list[Any]) -> None:
        if isinstance(items[0], str):
            items.sort(key=lambda name: (self.beam_order[int(name[6:])], int(name[6:])))
        elif isinstance(items[0], tuple):
            items.sort(key=lambda item: (self.move_order[int(item[0][6:])], int(item[0][6:])))
        elif clean := self.clean_points():
            chosen = clean[self.where[len(clean) - 1]]
            items.remove(chosen)
            items.insert(0, chosen)

    def step(self, actions: np.ndarray) -> dict[str, np.ndarray]:
        with mock.patch.object(np.random, "shuffle", self.shuffle), mock.patch.object(self.game, "rand", self.rand):
            observations, rewards, _, _ = self.env.step({f"agent-{a}": int(x) for a, x in enumerate(actions)})
        margin = self.cfg.view_len
        cells = np.vectorize(LETTERS.__getitem__)(self.env.world_map)
        beams = np.zeros(self.shape, np.uint8)
        for row, column, letter in self.env.beam_pos:
            beams[row, column] |= 1 if letter == b"F" else 2
        stride = self.shape[1] + 2 * margin
        agents = list(self.env.agents.values())
        places = [(agent.pos[0] + margin) * stride + agent.pos[1] + margin for agent in agents]
        views = [
            [
                [COLOURS.get(tuple(pixel), 5) for pixel in row]
                for row in observations[agent.agent_id]["curr_obs"].tolist()
            ]
            for agent in agents
        ]
        return {
            "next_cells": np.pad(cells, margin, constant_values=6).ravel().astype(np.uint8),
            "next_beams": np.pad(beams, margin).ravel(),
            "next_place": np.array(places, np.int16),
            "next_facing": np.array([FACINGS.index(agent.orientation) for agent in agents], np.uint8),
            "rewards": np.array([float(rewards[agent.agent_id]) for agent in agents]),
            "views": np.array(views, np.uint8),
        }


def wide_state(rng: np.random.Generator, sim: Simulator) -> None:
    """Agents close together, some of them on one cell, among apples and waste."""
    s, plan = sim.arrays, sim.env.tables(sim.cfg)["plan"]
    known = sim.env.constants(sim.cfg)
    cells = np.tile(plan, (sim.num_envs, 1))
    tables = sim.env.tables(sim.cfg)
    apples = tables["apple_cell"]
    cells[:, apples] = np.where(rng.random((sim.num_envs, len(apples))) < 0.4, 2, 0)
    if "waste_cell" in tables:
        waste = tables["waste_cell"]
        share = rng.random((sim.num_envs, 1)) * 0.6
        cells[:, waste] = np.where(rng.random((sim.num_envs, len(waste))) < share, 3, 4)
    open_cells = np.flatnonzero((plan != 1) & (plan != 6))
    place = np.zeros(s["place"].shape, np.int32)
    for k in range(sim.num_envs):
        middle = rng.choice(open_cells)
        rows, columns = np.divmod(open_cells - middle + 10 * known["STRIDE"] + 10, known["STRIDE"])
        order = np.argsort(np.hypot(rows - 10, columns - 10) + rng.random(len(open_cells)))
        near = open_cells[order[: max(len(open_cells) // 2, sim.cfg.num_agents)]]
        place[k] = rng.choice(near, sim.cfg.num_agents, replace=False)
        if sim.cfg.num_agents > 1 and rng.random() < 0.15:
            place[k, rng.integers(1, sim.cfg.num_agents)] = place[k, 0]
    sim.set_state({"cells": cells, "place": place, "facing": rng.integers(0, 4, place.shape)})


def record() -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    for game, cases in CASES.items():
        for number, (case, (config, envs, steps, fresh)) in enumerate(cases.items()):
            sim = Simulator(gpuzoo.get(game), envs, device="cpu", autoreset_mode="disabled", **config)
            sim.reset(seed=0)
            rng = np.random.default_rng(number)
            if not fresh:
                wide_state(rng, sim)
            first = {name: np.array(sim.arrays[name]) for name in ("cells", "place", "facing", "elapsed_steps")}
            twins = [Twin(sim, k) for k in range(envs)]
            weights = np.array([3, 3, 4, 3, 2, 2, 2, 2, 2][: sim.env.actions], float)
            rows: list[list[dict[str, np.ndarray]]] = []
            actions = rng.choice(sim.env.actions, (steps, envs, sim.cfg.num_agents), p=weights / weights.sum())
            for t in range(steps):
                drawn = draws_for(twins)
                for twin in twins:
                    twin.prepare(drawn)
                rows.append([twin.step(actions[t, twin.k]) for twin in twins])
                sim.arrays["action"][..., 0] = actions[t]
                sim.step()
            prefix = f"{game}/{case}/"
            arrays[prefix + "config"] = np.array(json.dumps(config))
            arrays[prefix + "actions"] = actions.astype(np.uint8)
            arrays |= {prefix + name: array for name, array in first.items()}
            arrays |= {prefix + name: np.array([[row[name] for row in step] for step in rows]) for name in rows[0][0]}
            shared = sum(
                len(set(place.tolist())) < len(place)
                for place in arrays[prefix + "next_place"].reshape(-1, sim.cfg.num_agents)
            )
            print(game, case, f"{steps * envs} transitions, {shared} with two agents on one cell")
    return arrays


def record_episodes() -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for game, cases in EPISODES.items():
        for number, (case, (config, envs)) in enumerate(cases.items()):
            sim = Simulator(gpuzoo.get(game), envs, device="cpu", autoreset_mode="disabled", **config)
            sim.reset(seed=0)
            rng = np.random.default_rng(number)
            twins = [Twin(sim, k) for k in range(envs)]
            digests = Digests(envs)
            for _ in range(LENGTH):
                drawn = draws_for(twins)
                actions = rng.choice(sim.env.actions, (envs, sim.cfg.num_agents), p=ACTIONS[game])
                for twin in twins:
                    twin.prepare(drawn)
                    digests.add(twin.k, twin.step(actions[twin.k]))
                sim.arrays["action"][..., 0] = actions
                sim.step()
            found[f"{game}/episodes/{case}"] = digests.done()
            print(game, case, f"{envs} episodes", flush=True)
    return found


if __name__ == "__main__":
    stand_in(sys.argv[1])
    np.savez_compressed(HERE / "social_dilemmas.npz", **record(), **record_episodes())
