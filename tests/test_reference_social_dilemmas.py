"""Harvest and Cleanup against records of Vinitsky et al.'s sequential_social_dilemma_games.

`tests/reference/record_social_dilemmas.py` made them; the original got our draws. Maps, places, orientations, beams,
what each agent sees and the rewards are equal. Those of inequity aversion are of float64 there, and are within 4 units
of the last place of the largest number in the sum. Of 1,000 whole episodes of each game there are digests.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference.digests import ACTIONS, EPISODES, LENGTH, Digests

import gpuzoo
from gpuzoo import Simulator

pytestmark = pytest.mark.rotates

with np.load(Path(__file__).parent / "reference" / "social_dilemmas.npz") as file:
    RECORDS = {name: file[name] for name in file.files}
HARVEST = gpuzoo.get("Harvest-v0")
CASES = sorted({case for name in RECORDS if not (case := name.rpartition("/")[0]).endswith("/episodes")})
MAP = """
@@@@@@@
@PAAP @
@ AAAP@
@P P P@
@@@@@@@
"""


def turned(view: np.ndarray, facing: int, upright: bool = False) -> np.ndarray:
    """A square of the map as an agent sees it: the original turns the views of two directions the wrong way."""
    return np.rot90(view, facing if upright else -facing)


def square(sim: Simulator, grid: np.ndarray, place: int) -> np.ndarray:
    known, far = sim.env.constants(sim.cfg), sim.cfg.view_len
    y, x = divmod(place, known["STRIDE"])
    return grid.reshape(-1, known["STRIDE"])[y - far : y + far + 1, x - far : x + far + 1]


def colours(sim: Simulator, view: np.ndarray) -> np.ndarray:
    """The colours in which the original shows views: 0 black, 1 wall, 2 apple, 3 waste, 4 water, 5 an agent."""
    shown = np.zeros(view.shape[:-1], np.uint8)
    names = list(sim.env.planes)
    for name, colour in (("wall", 1), ("apple", 2), ("waste", 3), ("river", 4), ("stream", 4)):
        if name in names:
            shown[view[..., names.index(name)] == 1] = colour
    others = [k for k, name in enumerate(names) if name.startswith("another agent")]
    shown[view[..., others].any(-1)] = 5
    shown[..., sim.cfg.view_len, sim.cfg.view_len] = 5  # the agent itself
    return shown


@pytest.mark.parametrize("case", CASES)
def test_record(case: str) -> None:
    record = {name.rpartition("/")[2]: array for name, array in RECORDS.items() if name.rpartition("/")[0] == case}
    config = json.loads(str(record["config"]))
    steps, envs, agents = record["actions"].shape
    sim = Simulator(gpuzoo.get(case.split("/")[0]), envs, device="cpu", autoreset_mode="disabled", **config)
    sim.reset(seed=0)
    first = ("cells", "place", "facing", "elapsed_steps")
    sim.set_state({name: record[name] for name in first})
    side = 2 * sim.cfg.view_len + 1
    names = list(sim.env.planes)
    for t in range(steps):
        sim.arrays["action"][..., 0] = record["actions"][t]
        sim.step()
        for name in ("cells", "place", "facing", "beams"):
            np.testing.assert_array_equal(sim.arrays[name], record[f"next_{name}"][t], err_msg=f"{name}, step {t}")
        ours, theirs = sim.arrays["reward"].astype(np.float64), record["rewards"][t]
        if config.get("inequity_averse_reward"):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=4 * 2.0**-23 * max(1.0, np.abs(theirs).max()))
        else:
            np.testing.assert_array_equal(ours, theirs)
        views = sim.arrays["observation"].reshape(envs, agents, side, side, len(names))
        np.testing.assert_array_equal(colours(sim, views), record["views"][t])
    assert not sim.arrays["terminated"].any()


@pytest.mark.parametrize(("env_id", "case"), [(game, case) for game, cases in EPISODES.items() for case in cases])
def test_whole_episodes(env_id: str, case: str) -> None:
    """1,000 episodes of each game: digests of all that `test_record` compares are the original's."""
    config, envs = EPISODES[env_id][case]
    sim = Simulator(
        gpuzoo.get(env_id), envs, device="cpu", autoreset_mode="disabled", max_episode_steps=LENGTH, **config
    )
    sim.reset(seed=0)
    number = list(EPISODES[env_id]).index(case)
    rng, digests, side = np.random.default_rng(number), Digests(envs), 2 * sim.cfg.view_len + 1
    paid = 0.0
    for _ in range(LENGTH):
        sim.arrays["action"][..., 0] = rng.choice(sim.env.actions, (envs, sim.cfg.num_agents), p=ACTIONS[env_id])
        sim.step()
        paid += float(np.abs(sim.arrays["reward"]).sum())
        views = colours(sim, sim.arrays["observation"].reshape(envs, sim.cfg.num_agents, side, side, -1))
        fields = {f"next_{name}": sim.arrays[name] for name in ("cells", "beams", "place", "facing")}
        for k in range(envs):
            step = {name: field[k] for name, field in fields.items()}
            digests.add(k, step | {"rewards": sim.arrays["reward"][k], "views": views[k]})
    assert sim.arrays["truncated"].all()
    assert paid > envs
    theirs = RECORDS[f"{env_id}/episodes/{case}"]
    differ = np.flatnonzero((digests.done() != theirs).any(1))
    assert not len(differ), f"episodes {differ.tolist()} differ from the original's"


@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize("env_id", ["Harvest-v0", "Cleanup-v0"])
def test_views(env_id: str, upright: bool) -> None:
    """Planes of beams, of the outside and of the others' directions, which the original's pictures do not show."""
    ascii_map = MAP if env_id == "Harvest-v0" else MAP.replace("AA", "BH").replace("A", "S")
    config: dict[str, Any] = {"num_agents": 5, "ascii_map": ascii_map, "view_len": 4, "upright_views": upright}
    sim = Simulator(gpuzoo.get(env_id), 30, device="cpu", autoreset_mode="disabled", **config)
    sim.reset(seed=0)
    names, rng = list(sim.env.planes), np.random.default_rng(0)
    for _ in range(5):
        sim.arrays["action"][...] = rng.integers(0, sim.env.actions, sim.arrays["action"].shape)
        sim.step()
    views = sim.arrays["observation"].reshape(30, 5, 9, 9, len(names))
    seen = 0
    for k in range(30):
        cells, beams = sim.arrays["cells"][k], sim.arrays["beams"][k]
        place, facing = sim.arrays["place"][k], sim.arrays["facing"][k]
        for a in range(5):

            def plane(grid: np.ndarray, a: int = a, k: int = k) -> np.ndarray:
                return turned(
                    square(sim, grid, int(sim.arrays["place"][k, a])), int(sim.arrays["facing"][k, a]), upright
                )

            view = views[k, a]
            np.testing.assert_array_equal(view[..., names.index("outside of the map")], plane(cells == 6))
            np.testing.assert_array_equal(view[..., names.index("fining beam")], plane(beams & 1 > 0))
            if "cleaning beam" in names:
                np.testing.assert_array_equal(view[..., names.index("cleaning beam")], plane(beams & 2 > 0))
            first = next(i for i, name in enumerate(names) if name.startswith("another agent"))
            for way in range(4):
                others = np.zeros(cells.shape, bool)
                for b in range(5):
                    others[place[b]] = False
                    if b != a and place[b] != place[a] and (facing[b] - facing[a]) % 4 == way:
                        others[place[b]] = True
                np.testing.assert_array_equal(view[..., first + way], plane(others))
                seen += int(others.any())
    assert seen > 100


def test_hughes_inequity_aversion() -> None:
    """Equation (2) of Hughes et al. with the smoothed rewards of their equation (3), in float64."""
    config = {"num_agents": 5, "ascii_map": MAP, "alpha": 5.0, "beta": 0.05, "inequity_decay": 0.75}
    plain, averse = (
        Simulator(HARVEST, 40, device="cpu", autoreset_mode="disabled", inequity_averse_reward=way, **config)
        for way in ("no", "hughes")
    )
    plain.reset(seed=1)
    averse.reset(seed=1)
    rng, smooth = np.random.default_rng(0), np.zeros((40, 5))
    for _ in range(20):
        actions = rng.integers(0, 8, (40, 5, 1))
        for sim in (plain, averse):
            sim.arrays["action"][...] = actions
            sim.step()
        reward = plain.arrays["reward"].astype(np.float64)
        smooth = 0.75 * smooth + reward
        gap = smooth[:, None, :] - smooth[:, :, None]
        expected = reward - (5.0 * np.maximum(gap, 0).sum(2) + np.float32(0.05) * np.maximum(-gap, 0).sum(2)) / 4
        np.testing.assert_allclose(averse.arrays["reward"], expected, rtol=1e-5, atol=1e-3)


def test_starts() -> None:
    """Agents begin on different places, each as often as another, looking everywhere."""
    sim = Simulator(HARVEST, 4000, device="cpu", autoreset_mode="disabled", num_agents=3, ascii_map=MAP)
    sim.reset(seed=0)
    place = sim.arrays["place"]
    assert all(len(set(row)) == 3 for row in place.tolist())
    starts = sim.env.tables(sim.cfg)["start"]
    for a in range(3):
        counts = np.array([(place[:, a] == start).sum() for start in starts])
        assert counts.sum() == 4000
        assert np.abs(counts - 4000 / len(starts)).max() < 5 * np.sqrt(4000 / len(starts))
        looks = np.bincount(sim.arrays["facing"][:, a], minlength=4)
        assert np.abs(looks - 1000).max() < 5 * np.sqrt(750)


def test_maps_that_cannot_be() -> None:
    for options, message in [
        ({"ascii_map": "@@\n@"}, "same length"),
        ({"ascii_map": "@PX"}, "has 'X'"),
        ({"ascii_map": "@P "}, "1 places to begin"),
        ({"num_agents": 1, "inequity_averse_reward": "hughes"}, "two agents"),
    ]:
        with pytest.raises(ValueError, match=message):
            gpuzoo.make("Harvest-v0", num_envs=1, **options)
    with pytest.raises(ValueError, match="threshold_depletion"):
        gpuzoo.make("Cleanup-v0", num_envs=1, threshold_depletion=0.1, threshold_restoration=0.2)
