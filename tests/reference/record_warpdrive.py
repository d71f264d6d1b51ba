"""Record transitions of WarpDrive's two tag games, for use as a test oracle.

Run from the repository root with any Python from 3.10 to 3.12::

    python tests/reference/record_warpdrive.py

The script makes a throw-away virtual environment (``--venv DIR`` keeps one for the next time),
installs WarpDrive there, runs itself again inside it and writes two files next to itself:

* ``warpdrive_tag_gridworld.npz``
* ``warpdrive_tag_continuous.npz``

The recorded code is the NumPy classes ``TagGridWorld`` and ``TagContinuous`` of the package
``rl-warp-drive`` 2.7.1 (BSD-3).  Nothing of that package is copied here: the script only calls it.
The classes are installed without the package's GPU dependencies, which they do not import, so
nothing has to be stubbed.  NumPy is pinned below 2, because the package was written for the old
promotion rules and computes in other precisions under the new ones (see ``README.md``).

Layout of the files
-------------------
Keys are ``<case>/<array>``; ``tests/reference/warpdrive.py`` reads them.  A case is one
configuration, with K transitions of N agents.  Taggers are always ids 0..T-1.  Constants:

=======================  ==========  ===============================================================
``config``               str         JSON: the keyword arguments of the constructor
``note``                 str         what the case is for
``types``                int8 (N,)   the reference's own codes.  Grid: tagger 0, runner 1.
                                     Continuous: tagger 1, runner 0
``obs_agents``           int16 (M,)  the agents whose observations are stored (all, unless N > 100)
``step_actions``         int8 (5,2)  grid: the x and y change of each action
``acceleration_actions`` f32 (A+1,)  continuous: the change of acceleration of each action
``turn_actions``         f32 (B+1,)  continuous: the change of heading of each action
``max_speeds``           f32 (N,)    continuous: max_speed * skill level
``tag_margin``           f32 ()      continuous: tagging_distance * grid_length
``reset_obs``            f32 (E,M,D) the observation that ``reset`` gave, for each whole episode
=======================  ==========  ===============================================================

Transitions, each with leading axis K:

===========================================  =======================================================
``episode``                                  int16; -1: the state was injected; otherwise the number
                                             of a whole episode, whose steps follow one another
``t``                                        int16; steps made before this one
``x y``                                      before the step; int16 (grid) or float32 (continuous)
``speed heading acceleration alive``         continuous only, before the step; ``alive`` is int8
``actions``                                  int8 (K,N) grid, (K,N,2) continuous
``next_<field>``                             after the step, for each of the fields above
``obs``                                      float32 (K,M,D)
``rewards``                                  float32 (K,N)
``done``                                     int8
===========================================  =======================================================

Precision: grid observations and rewards are float64 in the reference and are rounded here.
``TagContinuous`` keeps its state in float32 and works out observations in float32, apart from the
time feature (float64); it adds rewards up in float64.  Those too are rounded here.

A float32 re-implementation cannot be expected to agree where a decision (edge crossed, tagged, who
is nearest) hangs on the last bits of a cosine.  Such draws are thrown away and drawn again, except
where the numbers involved are exact (agents that stand still, movement by dyadic numbers, clipped
to a corner): there ties and equalities are recorded on purpose.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).resolve().parent
WITHOUT_DEPENDENCIES = ["rl-warp-drive==2.7.1"]
WITH_DEPENDENCIES = ["gym==0.26.2", "numpy==1.26.4"]
SEED = 20240524

FIELDS = {
    "grid": ("x", "y"),
    "continuous": ("x", "y", "speed", "heading", "acceleration", "alive"),
}


# --- outside: the virtual environment -----------------------------------------------------------


def record_in(directory: Path) -> None:
    """Make the virtual environment in ``directory`` unless it is there, and record inside it."""
    python = directory / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = directory / "ready"
    if not ready.exists():
        if not (3, 10) <= sys.version_info[:2] <= (3, 12):
            sys.exit("NumPy 1.26 has wheels for Python 3.10 to 3.12 only: use one of those")
        venv.create(directory, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *WITH_DEPENDENCIES], check=True)
        subprocess.run([*pip, "--no-deps", *WITHOUT_DEPENDENCIES], check=True)
        ready.touch()
    subprocess.run([str(python), "-I", "-W", "ignore", __file__, "--inside"], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--venv", type=Path, help="keep the virtual environment here, or reuse it")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        record_gridworld()
        record_continuous()
    elif args.venv:
        record_in(args.venv.resolve())
    else:
        with tempfile.TemporaryDirectory() as directory:
            record_in(Path(directory))


# --- inside: shared -----------------------------------------------------------------------------


class Case:
    """Collects the transitions of one configuration."""

    def __init__(self, game: str, config: dict[str, Any], note: str, constants: dict[str, Any]):
        self.fields = FIELDS[game]
        self.integers = "int16" if game == "grid" else "int8"
        self.constants = {"config": json.dumps(config, sort_keys=True), "note": note, **constants}
        self.rows: dict[str, list[Any]] = {}
        self.reset_obs: list[Any] = []

    def add(self, **row: Any) -> None:
        for key, value in row.items():
            self.rows.setdefault(key, []).append(value)

    def arrays(self) -> dict[str, Any]:
        import numpy as np

        out = {key: np.asarray(value) for key, value in self.constants.items()}
        if self.reset_obs:
            out["reset_obs"] = np.asarray(self.reset_obs, np.float32)
        for key, rows in self.rows.items():
            values = np.asarray(rows)
            if key in ("t", "episode"):
                dtype = "int16"
            elif key in ("actions", "done"):
                dtype = "int8"
            elif values.dtype.kind == "f":
                dtype = "float32"
            else:
                dtype = self.integers
            out[key] = values.astype(dtype)
            assert (out[key] == values).all() or dtype == "float32", key
        return out


def save(path: Path, cases: dict[str, Case]) -> None:
    import numpy as np

    flat = {f"{name}/{key}": value for name, case in cases.items() for key, value in case.arrays().items()}
    np.savez_compressed(path, **flat)
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB, {len(cases)} cases")


def stack(values: dict[int, Any], agents: Any) -> Any:
    import numpy as np

    return np.stack([np.asarray(values[int(agent)]) for agent in agents])


# --- TagGridWorld -------------------------------------------------------------------------------

# configuration, transitions from drawn states, whole episodes
GRID_CASES: list[tuple[dict[str, Any], int, int]] = [
    ({}, 120, 1),
    ({"num_taggers": 4, "grid_length": 100, "tag_penalty_for_runner": 5.0}, 120, 1),
    ({"num_taggers": 4, "grid_length": 100, "use_full_observation": False}, 150, 0),
    ({"num_taggers": 1, "grid_length": 4, "episode_length": 20}, 150, 4),
    (
        {
            "num_taggers": 1,
            "grid_length": 4,
            "episode_length": 20,
            "use_full_observation": False,
            "wall_hit_penalty": 0.5,
            "tag_reward_for_tagger": 1.5,
            "tag_penalty_for_runner": 0.0,
            "step_cost_for_tagger": 0.25,
        },
        150,
        4,
    ),
    (
        {
            "num_taggers": 10,
            "grid_length": 10,
            "use_full_observation": False,
            "wall_hit_penalty": 0.0,
            "tag_reward_for_tagger": 3.0,
            "step_cost_for_tagger": 0.0,
        },
        200,
        2,
    ),
    ({"num_taggers": 37, "grid_length": 10, "episode_length": 7}, 60, 1),
    (
        {
            "num_taggers": 37,
            "grid_length": 100,
            "use_full_observation": False,
            "wall_hit_penalty": 1.25,
            "tag_penalty_for_runner": 7.5,
        },
        120,
        0,
    ),
    ({"num_taggers": 37, "grid_length": 4, "use_full_observation": False}, 100, 1),
    ({"num_taggers": 4, "grid_length": 10, "episode_length": 1, "wall_hit_penalty": 2.0}, 60, 1),
]


def record_gridworld() -> None:
    import numpy as np
    from example_envs.tag_gridworld.tag_gridworld import TagGridWorld  # type: ignore[import-not-found]

    rng = np.random.default_rng(SEED)
    cases: dict[str, Case] = {}
    tags = walls = 0
    for number, (config, count, episodes) in enumerate(GRID_CASES):
        env = TagGridWorld(**config)
        agents = np.arange(env.num_agents)
        case = cases[f"g{number:02d}"] = Case(
            "grid",
            config,
            "drawn states and whole episodes",
            {
                "types": np.array([env.agent_type[agent] for agent in agents], np.int8),
                "obs_agents": agents.astype(np.int16),
                "step_actions": env.step_actions.astype(np.int8),
            },
        )

        def step(env: Any, case: Case, agents: Any, actions: Any, episode: int) -> bool:
            t = env.timestep
            before = {
                "x": env.global_state["loc_x"][t].copy(),
                "y": env.global_state["loc_y"][t].copy(),
            }
            obs, rewards, done, _ = env.step({int(a): int(actions[a]) for a in agents})
            case.add(
                episode=episode,
                t=t,
                **before,
                actions=actions,
                next_x=env.global_state["loc_x"][t + 1].copy(),
                next_y=env.global_state["loc_y"][t + 1].copy(),
                obs=stack(obs, agents),
                rewards=stack(rewards, agents),
                done=int(done["__all__"]),
            )
            return bool(done["__all__"])

        for _ in range(count):
            env.reset()
            env.timestep = int(rng.integers(env.episode_length))
            if rng.random() < 0.25:
                env.timestep = env.episode_length - 1
            x, y, actions = draw_grid(rng, env)
            env.global_state["loc_x"][env.timestep] = x
            env.global_state["loc_y"][env.timestep] = y
            step(env, case, agents, actions, -1)
        for episode in range(episodes):
            case.reset_obs.append(stack(env.reset(), agents))
            while not step(env, case, agents, rng.integers(5, size=len(agents)), episode):
                pass
        rewards = np.array(case.rows["rewards"])
        tags += int((rewards[:, 0] > 0.5).sum())
        x, y = np.array(case.rows["x"]), np.array(case.rows["y"])
        moves = env.step_actions[np.array(case.rows["actions"])]
        walls += int(((x + moves[..., 0]) != np.array(case.rows["next_x"])).sum())
        walls += int(((y + moves[..., 1]) != np.array(case.rows["next_y"])).sum())
    print(f"grid: {tags} tags, {walls} wall hits")
    save(HERE / "warpdrive_tag_gridworld.npz", cases)


def draw_grid(rng: Any, env: Any) -> tuple[Any, Any, Any]:
    """A state anywhere on the grid, near the runner, or on the border; and actions."""
    import numpy as np

    count, length = env.num_agents, env.grid_length
    x = rng.integers(length + 1, size=count)
    y = rng.integers(length + 1, size=count)
    style = rng.integers(3)
    if style == 1:  # all taggers at most two cells from the runner
        x[:-1] = np.clip(x[-1] + rng.integers(-2, 3, size=count - 1), 0, length)
        y[:-1] = np.clip(y[-1] + rng.integers(-2, 3, size=count - 1), 0, length)
        far = rng.random(count - 1) < rng.choice([0.0, 0.9])
        x[:-1][far] = rng.integers(length + 1, size=int(far.sum()))
    elif style == 2:  # many on the border
        x = np.where(rng.random(count) < 0.5, rng.choice([0, length], size=count), x)
        y = np.where(rng.random(count) < 0.5, rng.choice([0, length], size=count), y)
    actions = rng.integers(5, size=count)
    if rng.random() < 0.3:  # into the wall, or towards the runner
        actions = np.where(x == 0, 2, np.where(x == length, 1, actions))
    return x, y, actions


# --- TagContinuous ------------------------------------------------------------------------------

KEYS = {
    "x": "loc_x",
    "y": "loc_y",
    "speed": "speed",
    "heading": "direction",
    "acceleration": "acceleration",
}

# note, configuration, transitions from drawn states, whole episodes
CONTINUOUS_CASES: list[tuple[str, dict[str, Any], int, int]] = [
    ("wide", {}, 40, 0),
    (
        "wide",
        {
            "num_taggers": 5,
            "num_runners": 5,
            "runner_exits_game_after_tagged": False,
            "tagging_distance": 0.1,
            "edge_hit_penalty": -0.5,
            "step_penalty_for_tagger": -0.125,
            "step_reward_for_runner": 0.0625,
            "tag_reward_for_tagger": 2.5,
            "tag_penalty_for_runner": -3.5,
            "end_of_game_reward_for_runner": 4.0,
        },
        50,
        0,
    ),
    (
        "wide",
        {
            "num_taggers": 1,
            "num_runners": 10,
            "use_full_observation": False,
            "tagging_distance": 0.15,
            "skill_level_tagger": 1.3,
            "skill_level_runner": 0.7,
            "edge_hit_penalty": -0.1,
            "step_penalty_for_tagger": -0.01,
            "step_reward_for_runner": 0.03,
        },
        80,
        0,
    ),
    (
        "wide; fewer others than are observed, so always padded",
        {
            "num_taggers": 5,
            "num_runners": 5,
            "use_full_observation": False,
            "num_other_agents_observed": 10,
            "tagging_distance": 0.2,
            "max_speed": 2.0,
            "skill_level_tagger": 1.25,
            "skill_level_runner": 0.9,
            "episode_length": 500,
        },
        50,
        0,
    ),
    (
        "the package's published configuration",
        {
            "num_taggers": 10,
            "num_runners": 100,
            "grid_length": 20.0,
            "episode_length": 500,
            "max_acceleration": 0.1,
            "min_acceleration": -0.1,
            "max_turn": 2.356,
            "min_turn": -2.356,
            "num_acceleration_levels": 20,
            "num_turn_levels": 20,
            "use_full_observation": False,
            "num_other_agents_observed": 10,
            "tag_reward_for_tagger": 10.0,
            "tag_penalty_for_runner": -10.0,
            "tagging_distance": 0.02,
        },
        12,
        0,
    ),
    (
        "wide; full observation of many",
        {
            "num_taggers": 10,
            "num_runners": 100,
            "grid_length": 20.0,
            "tagging_distance": 0.05,
            "edge_hit_penalty": -0.25,
            "runner_exits_game_after_tagged": False,
        },
        5,
        0,
    ),
    (
        "wide; unequal levels; an asymmetric table of turns and of accelerations",
        {
            "num_taggers": 2,
            "num_runners": 4,
            "grid_length": 3.0,
            "tagging_distance": 0.25,
            "max_acceleration": 0.3,
            "min_acceleration": -0.2,
            "max_turn": 3.0,
            "min_turn": -0.5,
            "num_acceleration_levels": 3,
            "num_turn_levels": 7,
            "max_speed": 0.5,
            "edge_hit_penalty": -1.0,
        },
        80,
        0,
    ),
    (
        "wide; one acceleration level (the minimum) and no turns; one other agent",
        {
            "num_taggers": 1,
            "num_runners": 1,
            "num_acceleration_levels": 1,
            "num_turn_levels": 0,
            "min_acceleration": 0.25,
            "max_acceleration": 0.5,
            "use_full_observation": False,
            "num_other_agents_observed": 1,
            "tagging_distance": 0.4,
            "grid_length": 5.0,
            "episode_length": 10,
        },
        150,
        2,
    ),
    (
        "wide; three of thirteen observed",
        {
            "num_taggers": 3,
            "num_runners": 10,
            "grid_length": 8.0,
            "tagging_distance": 0.15,
            "use_full_observation": False,
            "num_other_agents_observed": 3,
            "max_speed": 4.0,
            "skill_level_runner": 0.25,
            "step_penalty_for_tagger": -0.5,
        },
        60,
        0,
    ),
    (
        "lattice: still agents and dyadic moves, so distances tie and equal the tagging margin",
        {
            "num_taggers": 4,
            "num_runners": 8,
            "grid_length": 8.0,
            "tagging_distance": 0.125,
            "use_full_observation": False,
            "num_other_agents_observed": 4,
            "min_acceleration": -0.5,
            "max_acceleration": 0.5,
            "num_acceleration_levels": 5,
            "num_turn_levels": 5,
            "edge_hit_penalty": -0.25,
        },
        60,
        0,
    ),
    (
        "lattice: as before, runners stay in the game",
        {
            "num_taggers": 4,
            "num_runners": 4,
            "grid_length": 8.0,
            "tagging_distance": 0.25,
            "min_acceleration": -0.5,
            "max_acceleration": 0.5,
            "num_acceleration_levels": 5,
            "num_turn_levels": 5,
            "edge_hit_penalty": -0.25,
            "runner_exits_game_after_tagged": False,
        },
        50,
        0,
    ),
    (
        "axis: agents on the edges with float32 headings 0, pi/2, pi, 3pi/2 and 2pi, so that the "
        "tiny cosine of a rounded right angle decides about a crossing",
        {
            "num_taggers": 2,
            "num_runners": 4,
            "grid_length": 10.0,
            "tagging_distance": 0.3,
            "edge_hit_penalty": -0.75,
            "use_full_observation": False,
            "num_other_agents_observed": 2,
        },
        60,
        0,
    ),
    (
        "episodes",
        {
            "num_taggers": 2,
            "num_runners": 4,
            "grid_length": 4.0,
            "tagging_distance": 0.08,
            "episode_length": 40,
            "edge_hit_penalty": -0.1,
        },
        0,
        3,
    ),
    (
        "episodes",
        {
            "num_taggers": 3,
            "num_runners": 6,
            "grid_length": 6.0,
            "tagging_distance": 0.1,
            "episode_length": 60,
            "use_full_observation": False,
            "num_other_agents_observed": 4,
            "max_acceleration": 0.1,
            "min_acceleration": -0.1,
            "step_reward_for_runner": 0.1,
            "skill_level_tagger": 1.5,
        },
        0,
        4,
    ),
    (
        "episodes",
        {
            "num_taggers": 2,
            "num_runners": 3,
            "grid_length": 2.0,
            "tagging_distance": 0.2,
            "episode_length": 30,
            "runner_exits_game_after_tagged": False,
            "use_full_observation": False,
            "edge_hit_penalty": -0.5,
        },
        0,
        3,
    ),
]


def record_continuous() -> None:
    import numpy as np

    rng = np.random.default_rng(SEED + 1)
    cases: dict[str, Case] = {}
    totals: dict[str, int] = {}
    for number, (note, config, count, episodes) in enumerate(CONTINUOUS_CASES):
        env = make_continuous(config)
        agents = np.arange(env.num_agents)
        if env.num_agents > 100:
            agents = agents[:: 6 if env.use_full_observation is False else 18]
        speeds = np.float64(env.max_speed) * np.array(env.skill_levels, np.float64)
        # Otherwise the reference compares a float32 speed with a limit that has no float32 value.
        assert (np.float32(speeds) == speeds).all(), "choose a max_speed that is a power of two"
        case = cases[f"c{number:02d}"] = Case(
            "continuous",
            config,
            note,
            {
                "types": np.array(list(env.agent_type.values()), np.int8),
                "obs_agents": agents.astype(np.int16),
                "acceleration_actions": env.acceleration_actions,
                "turn_actions": env.turn_actions,
                "max_speeds": np.float32(speeds),
                "tag_margin": np.float32(env.distance_margin_for_reward),
            },
        )
        kept = 0
        while kept < count:
            env.reset()
            t, state, actions = draw_continuous(rng, env, note)
            inject(env, t, state)
            row, sound = step_continuous(env, actions, agents, note)
            if sound:
                case.add(episode=-1, **row)
                count_events(totals, env, row)
                kept += 1
        for episode in range(episodes):
            sound = False
            while not sound:
                sound, done, rows = True, False, []
                env.starting_location_x = env.grid_length * rng.random(env.num_agents)
                env.starting_location_y = env.grid_length * rng.random(env.num_agents)
                env.starting_directions = np.pi / 2 * rng.integers(4, size=env.num_agents)
                reset_obs = stack(env.reset(), agents)
                while sound and not done:
                    actions = draw_actions(rng, env)
                    row, sound = step_continuous(env, actions, agents, note)
                    rows.append(row)
                    done = bool(row["done"])
            case.reset_obs.append(reset_obs)
            for row in rows:
                case.add(episode=episode, **row)
                count_events(totals, env, row)
    print("continuous:", ", ".join(f"{value} {key}" for key, value in totals.items()))
    save(HERE / "warpdrive_tag_continuous.npz", cases)


def make_continuous(config: dict[str, Any]) -> Any:
    """A reference environment whose taggers are ids 0..T-1.

    The constructor asks NumPy's global generator for a random set of tagger ids (the one draw
    without replacement) and derives everything else from the answer.  Giving it the first ids as
    the answer keeps the object consistent, unlike changing its attributes afterwards.
    """
    import numpy as np
    from example_envs.tag_continuous.tag_continuous import TagContinuous  # type: ignore[import-not-found]

    def choice(values: Any, size: int, replace: bool = True) -> Any:
        return np.asarray(values)[np.arange(size) % len(values)]

    with mock.patch.object(np.random, "choice", choice):
        env = TagContinuous(**config)
    taggers = config.get("num_taggers", 1)
    assert [env.agent_type[a] for a in range(taggers + 1)] == [1] * taggers + [0]
    return env


def draw_actions(rng: Any, env: Any) -> Any:
    import numpy as np

    count = env.num_agents
    actions = np.stack(
        [
            rng.integers(env.num_acceleration_levels + 1, size=count),
            rng.integers(env.num_turn_levels + 1, size=count),
        ],
        axis=1,
    )
    if rng.random() < 0.3:
        actions[rng.random(count) < 0.5] = 0
    return actions


def draw_continuous(rng: Any, env: Any, note: str) -> tuple[int, dict[str, Any], Any]:
    """A time, a state from anywhere the game can be in (and a little beyond), and actions."""
    import numpy as np

    count, taggers, length = env.num_agents, env.num_taggers, float(env.grid_length)
    margin = float(env.distance_margin_for_reward)
    types = np.array(list(env.agent_type.values()))
    limit = np.float32(np.float64(env.max_speed) * np.array(env.skill_levels, np.float64))

    t = int(rng.choice([rng.integers(env.episode_length), 0, env.episode_length - 1], p=[0.6, 0.1, 0.3]))
    x, y = length * rng.random((2, count))
    if rng.random() < 0.5:  # runners around taggers, close enough to be tagged by the dozen
        chosen = rng.integers(rng.integers(1, taggers + 1), size=count)
        near = (types == 0) & (rng.random(count) < rng.choice([0.3, 0.9]))
        radius, angle = 2.5 * margin * rng.random(count), 2 * np.pi * rng.random(count)
        x = np.where(near, x[chosen] + radius * np.cos(angle), x)
        y = np.where(near, y[chosen] + radius * np.sin(angle), y)
    if rng.random() < 0.5:  # on the edges and in the corners
        edge = rng.random((2, count)) < rng.choice([0.1, 0.4])
        x = np.where(edge[0], rng.choice([0.0, length], size=count), x)
        y = np.where(edge[1], rng.choice([0.0, length], size=count), y)
    speed = limit * np.select([rng.random(count) < 0.15, rng.random(count) < 0.2], [0.0, 1.0], rng.random(count))
    if rng.random() < 0.5:
        speed *= rng.random()
    bound = float(max(abs(env.min_acceleration), abs(env.max_acceleration)))
    acceleration = bound * rng.uniform(-2.0, 2.0, count) * (rng.random(count) < 0.7)
    heading = 2 * np.pi * rng.random(count)
    wrap = rng.random(count) < 0.1
    heading = np.where(wrap, rng.choice([0.0, 1e-4, 6.28318, np.float32(2 * np.pi)], size=count), heading)
    actions = draw_actions(rng, env)

    if note.startswith("lattice"):
        x = rng.integers(0, int(length) + 1, size=count).astype(float)
        y = rng.integers(0, int(length) + 1, size=count).astype(float)
        if rng.random() < 0.5:
            x, y = np.clip(x, 2, 5), np.clip(y, 2, 5)
        moving = rng.random(count) < 0.3
        speed = np.where(moving, rng.choice([0.0, 0.25, 0.5, 1.0], size=count), 0.0)
        acceleration = np.where(moving, rng.choice([0.0, 0.25, -0.25], size=count), 0.0)
        heading = np.where(moving, 0.0, heading)
        actions[:, 1] *= ~moving
        actions[:, 0] = np.where(moving, actions[:, 0], rng.integers(3, size=count))
    elif note.startswith("axis"):
        side = rng.integers(4, size=count)
        x = np.select([side == 0, side == 1], [0.0, length], x)
        y = np.select([side == 2, side == 3], [0.0, length], y)
        speed = np.maximum(speed, 0.25 * limit)
        heading = np.pi / 2 * rng.integers(5, size=count)
        actions[:, 1] *= rng.random(count) < 0.2

    alive = np.ones(count, int)
    if env.runner_exits_game_after_tagged:
        gone = (types == 0) & (rng.random(count) < rng.choice([0.0, 0.3, 0.9]))
        gone[rng.integers(taggers, count)] = False  # the reference cannot step without runners
        alive[gone] = 0
        frozen = gone & (rng.random(count) < 0.7)  # the others were tagged one step ago
        for values in (speed, heading, acceleration):
            values[frozen] = 0.0
    state = {"x": np.clip(x, 0, length), "y": np.clip(y, 0, length), "speed": speed}
    state |= {"heading": heading, "acceleration": acceleration}
    state = {key: np.asarray(value, np.float32) for key, value in state.items()}
    state["heading"] = np.minimum(state["heading"], np.float32(2 * np.pi))
    return t, {**state, "alive": alive}, actions


def inject(env: Any, t: int, state: dict[str, Any]) -> None:
    """Put a state into a reference environment that has just been reset."""
    env.timestep = t
    for key, theirs in KEYS.items():
        env.global_state[theirs][t] = state[key]
    env.still_in_the_game[:] = state["alive"]
    env.global_state["still_in_the_game"][t:] = state["alive"]
    env.runners = {agent: True for agent in env.runners if state["alive"][agent]}
    env.num_runners = len(env.runners)


def read(env: Any, prefix: str = "") -> dict[str, Any]:
    state = {prefix + key: env.global_state[theirs][env.timestep].copy() for key, theirs in KEYS.items()}
    return {**state, prefix + "alive": env.still_in_the_game.copy()}


def step_continuous(env: Any, actions: Any, agents: Any, note: str) -> tuple[dict[str, Any], bool]:
    """One step: the record, and whether its decisions are safe from rounding."""
    row: dict[str, Any] = {"t": env.timestep, **read(env), "actions": actions}
    obs, rewards, done, _ = env.step({a: tuple(map(int, pair)) for a, pair in enumerate(actions)})
    row |= read(env, "next_")
    row |= {
        "obs": stack(obs, agents),
        "rewards": stack(rewards, range(env.num_agents)),
        "done": int(done["__all__"]),
    }
    return row, decisions_are_sound(env, row, note)


def decisions_are_sound(env: Any, row: dict[str, Any], note: str) -> bool:
    """Whether no decision of this step hangs on the last bits of a sine or cosine."""
    import numpy as np

    length, tag = float(env.grid_length), float(env.distance_margin_for_reward)
    slack = 2e-6 * length + 1e-6 * float(row["next_speed"].max())
    alive = row["alive"].astype(bool)
    speed, heading = np.float64(row["next_speed"]), np.float64(row["next_heading"])
    x: Any = np.float64(row["next_x"])
    y: Any = np.float64(row["next_y"])
    exact = speed == 0
    if note.startswith("lattice"):  # all lengths are dyadic there
        exact |= heading == 0

    if not note.startswith("axis"):
        for start, move in ((row["x"], np.cos(heading)), (row["y"], np.sin(heading))):
            raw = np.float64(start) + speed * move
            close = (np.abs(raw) < slack) | (np.abs(raw - length) < slack)
            if (close & ~exact).any():
                return False

    exact |= np.isin(x, (0.0, length)) & np.isin(y, (0.0, length))
    distance: Any = np.hypot(x[:, None] - x, y[:, None] - y)

    def settled(me: int, others: Any, first: int) -> bool:
        """Whether the order of the ``first`` nearest others is the same with rounding."""
        order = others[np.argsort(distance[me, others], kind="stable")][: first + 1]
        for a, b in pairwise(order):
            if distance[me, b] - distance[me, a] > slack:
                continue
            same_place = x[a] == x[b] and y[a] == y[b]
            if not (exact[a] and exact[b] and (exact[me] or same_place)):
                return False
        return True

    ids = np.arange(len(x))
    taggers = ids[: env.num_taggers]
    for runner in ids[env.num_taggers :][alive[env.num_taggers :]]:
        near = np.abs(distance[runner, taggers] - tag) <= slack
        if (near & ~(exact[taggers] & exact[runner])).any():
            return False
        if distance[runner, taggers].min() < tag + slack and not settled(runner, taggers, 1):
            return False
    if not env.use_full_observation:
        for me in ids[alive]:
            if not settled(me, ids[alive & (ids != me)], env.num_other_agents_observed):
                return False
    return True


def count_events(totals: dict[str, int], env: Any, row: dict[str, Any]) -> None:
    """Add up how often the rarer rules were exercised."""
    import numpy as np

    runners = slice(env.num_taggers, None)
    alive = row["alive"][runners].astype(bool)
    x, y = row["next_x"], row["next_y"]
    gap = np.hypot(x[runners, None] - x[: env.num_taggers], y[runners, None] - y[: env.num_taggers])
    tagged = (gap.min(1) < env.distance_margin_for_reward) & alive
    by = np.bincount(gap.argmin(1)[tagged], minlength=env.num_taggers)
    limit = np.float32(env.max_speed * np.array(env.skill_levels))
    last = row["t"] + 1 == env.episode_length
    events = {
        "transitions": 1,
        "tags": int(tagged.sum()),
        "taggers with several tags": int((by > 1).sum()),
        "in the last step": int(tagged.sum()) * last,
        "last steps": int(last),
        "ends without runners": int(row["next_alive"][runners].sum() == 0),
        "edge clips": int(
            (np.isin(x, (0, env.grid_length)) & (x != row["x"])).sum()
            + (np.isin(y, (0, env.grid_length)) & (y != row["y"])).sum()
        ),
        "agent steps at top speed": int((row["next_speed"] == limit).sum()),
        "agent steps of agents out": int((row["alive"] == 0).sum()),
    }
    for key, value in events.items():
        totals[key] = totals.get(key, 0) + value


if __name__ == "__main__":
    main()
