"""MAgent's games against MAgent2's, bit for bit: observations, rewards, ends and state.

MAgent2 shuffles attacks with its own generator. Here it is seeded before each step such that it shuffles them into the
order of ours, which is possible if few attack: all others move. Where chance draws the start, MAgent2 starts from ours.
Free fights, in which the orders differ, are compared in distribution.
"""

from __future__ import annotations

import functools
import importlib
import itertools

import numpy as np
import pytest
from draws import bits

import gpuzoo
from gpuzoo import Simulator

MOST_ATTACKS = 5
#: MAgent2's name, and the size of a small map
GAMES = {
    "MAgentBattle-v0": ("battle_v4", 20),
    "MAgentBattlefield-v0": ("battlefield_v5", 46),
    "MAgentCombinedArms-v0": ("combined_arms_v6", 22),
    "MAgentGather-v0": ("gather_v5", 60),
    "MAgentAdversarialPursuit-v0": ("adversarial_pursuit_v4", 20),
    "MAgentTigerDeer-v0": ("tiger_deer_v4", 20),
}


@functools.cache
def seeds() -> dict[tuple[int, ...], int]:
    """A seed of MAgent2's generator, minstd_rand0, for each order of up to so many attacks."""
    found: dict[tuple[int, ...], int] = {}
    first = np.arange(1, 20_000)
    for n in range(1, MOST_ATTACKS + 1):
        order, number = np.tile(np.arange(n), (len(first), 1)), first.copy()
        for i in range(n):
            number = number * 16807 % (2**31 - 1)
            j = number % (i + 1)
            row = np.arange(len(first))
            order[row, i], order[row, j] = order[row, j].copy(), order[row, i].copy()
        found |= dict(zip(map(tuple, order.tolist()), first.tolist(), strict=True))
    assert len(found) == sum(len(list(itertools.permutations(range(n)))) for n in range(1, MOST_ATTACKS + 1))
    return found


def original(name: str, map_size: int, **options: object):
    """MAgent2's parallel env, which is in a module of its name, where gather keeps the size of its map."""
    game = name.rsplit("_", 1)[0]
    module = importlib.import_module(f"magent2.environments.{game}.{game}")
    if game != "gather":
        return module.parallel_env(map_size=map_size, **options)
    module.map_size = map_size
    return module.parallel_env(**options)


class Pair:
    """One env of ours, and MAgent2's, which starts as ours does."""

    def __init__(self, game: str, limit: int = 1000, **options: object) -> None:
        self.sim = Simulator(
            gpuzoo.get(game), 1, device="cpu", autoreset_mode="disabled", max_episode_steps=limit, **options
        )
        self.cfg, self.env = self.sim.cfg, self.sim.env
        self.known, self.tables = self.env.constants(self.cfg), self.env.tables(self.cfg)
        self.theirs = original(GAMES[game][0], max_cycles=limit, **options)
        self.agents = self.theirs.possible_agents
        groups = [name.rsplit("_", 1)[0] for name in self.agents]
        shapes = {group: self.env.observation_space(self.cfg, group).shape for group in set(groups)}
        self.shapes = [shapes[group] for group in groups]

    def cells(self, xy):
        return (xy[:, 1] + self.known["MARGIN"]) * self.known["STRIDE"] + xy[:, 0] + self.known["MARGIN"]

    def positions(self):
        """(x, y) of each body, then of each drawn wall."""
        return np.stack(np.divmod(self.sim.arrays["cell"][0], self.known["STRIDE"]), 1)[:, ::-1] - self.known["MARGIN"]

    def draw_start(self, rng, spread=None):
        """Places all bodies and walls near each other."""
        size, side = self.cfg.map_size, self.tables["side"][self.tables["group"]]
        side = np.concatenate([side, np.ones(self.known["WALLS"], int)])
        free = self.env.plan(self.cfg)[(slice(self.known["MARGIN"], -self.known["MARGIN"]),) * 2] == -1
        spread = spread or rng.choice([0.25, 1.0])
        centre, xy = rng.integers(1, size - 1, 2), np.zeros((len(side), 2), int)
        for k, s in enumerate(side):
            while True:
                x, y = np.clip(np.rint(centre + rng.normal(0, spread * size, 2)).astype(int), 1, size - 1 - s)
                if free[y : y + s, x : x + s].all():
                    break
                spread = min(1.01 * spread, 2.0)
            free[y : y + s, x : x + s] = False
            xy[k] = x, y
        grid = self.env.plan(self.cfg).ravel().copy()
        for k, cell in enumerate(self.cells(xy)):
            for row, col in np.ndindex(side[k], side[k]):
                grid[cell + row * self.known["STRIDE"] + col] = k if k < self.known["BODIES"] else -2
        self.sim.set_state({"cell": self.cells(xy)[None].astype(np.int32), "map": grid[None]})

    def reset(self, seed, rng=None, own=False):
        self.sim.reset(seed=seed)
        if rng is not None:
            self.draw_start(rng)
        if not own:
            self.theirs.generate_map = self.place
        observations, _ = self.theirs.reset()
        # MAgent2 counts agents before it places them: in the first step all groups would get the first one's actions.
        self.theirs.team_sizes = [self.theirs.env.get_num(handle) for handle in self.theirs.handles]
        self.compare(observations)

    def place(self):
        """MAgent2's map, as ours is."""
        engine, handles = self.theirs.env, self.theirs.env.get_handles()
        xy, bodies, group = self.positions(), self.known["BODIES"], self.tables["group"]
        fixed = list(self.env.inner_walls(self.cfg)) + xy[bodies:].tolist()
        if fixed:
            engine.add_walls(method="custom", pos=fixed)
        order = [self.known["FIRST_VIEWER"], *range(self.known["FIRST_VIEWER"] + 1, self.known["GROUPS"])]
        for g in order + list(range(self.known["FIRST_VIEWER"])):
            engine.add_agents(handles[g], method="custom", pos=[[x, y, 0] for x, y in xy[:bodies][group == g].tolist()])
            assert engine.get_num(handles[g]) == (group == g).sum()
        base = np.zeros_like(self.theirs.base_state)  # MAgent2 keeps the walls of its first map
        wx, wy = zip(*engine._get_walls_info(), strict=True)
        base[wx, wy, 0] = 1
        self.theirs.base_state = base

    def step(self, actions):
        """Both make a step, with attacks in our order."""
        living = [k for k, name in enumerate(self.agents) if name in self.theirs.agents]
        attackers = [a for a in living if actions[a] >= self.tables["moves"][self.tables["group"][a]]]
        if attackers:
            keys = [int(bits(self.sim, 0, agent=a)[0]) for a in attackers]
            self.theirs.env.set_seed(seeds()[tuple(int(k) for k in np.argsort(keys, kind="stable"))])
        self.sim.arrays["action"][0] = actions[:, None]
        self.sim.step()
        observations, rewards, ends, cuts, _ = self.theirs.step({self.agents[k]: int(actions[k]) for k in living})
        self.compare(observations)
        for k in living:
            name = self.agents[k]
            assert np.float32(rewards[name]) == self.sim.arrays["reward"][0, k], name
            assert ends[name] == self.sim.arrays["terminated"][0, k], name
            assert cuts[name] == self.sim.arrays["truncated"][0, k], name
        return bool(self.theirs.agents)

    def compare(self, observations):
        for k, name in enumerate(self.agents):
            if name not in observations:
                continue
            shape = self.shapes[k]
            ours = self.sim.arrays["observation"][0, k, : np.prod(shape)].reshape(shape)
            if not np.array_equal(ours, observations[name]):  # which is quicker, and says less
                np.testing.assert_array_equal(ours, observations[name], err_msg=name)

    def compare_state(self):
        np.testing.assert_array_equal(self.sim.global_state()[0], self.theirs.state())


def choose(pair, rng):
    """Most move; a few attack, mostly somebody."""
    n = len(pair.agents)
    group, moves = pair.tables["group"][:n], pair.tables["moves"]
    actions = (rng.random(n) * moves[group]).astype(int)
    grid, cell = pair.sim.arrays["map"][0], pair.sim.arrays["cell"][0]
    hp, left = pair.sim.arrays["hp"][0], MOST_ATTACKS
    for a in rng.permutation(np.flatnonzero(pair.sim.arrays["life"][0, :n] == 2)):
        ways = pair.tables["actions"][group[a]] - moves[group[a]]
        if left == 0 or ways == 0:
            continue
        most = pair.known["MOST_ATTACKS"]
        reach = grid[cell[a] + pair.tables["reach"][group[a] * most : group[a] * most + ways]]
        good = [
            w for w, b in enumerate(reach) if b >= 0 and (rng.random() < 0.2 or pair.tables["group"][b] != group[a])
        ]
        if good and rng.random() < 0.8:
            way = min(good, key=lambda w: hp[reach[w]])
        elif rng.random() < 0.02:
            way = rng.integers(ways)
        else:
            continue
        actions[a] = moves[group[a]] + way
        left -= 1
    return actions


OPTIONS = [{}, {"minimap_mode": True}, {"extra_features": True}, {"minimap_mode": True, "extra_features": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(o) or "plain")
@pytest.mark.parametrize("name", GAMES)
def test_drawn_starts(name, options):
    """Fights from places drawn at random, near each other: every number is the same."""
    rng, pair = np.random.default_rng(0), Pair(name, map_size=GAMES[name][1], **options)
    deeds = np.zeros(4, int)
    for episode in range(10):
        pair.reset(episode, rng)
        for t in range(80):
            over = not pair.step(choose(pair, rng))
            deeds += np.bincount(pair.sim.arrays["deed"][0], minlength=4)
            if over:
                break
            if t % 5 == 0:
                pair.compare_state()
    least = [1000, 10, 100, 0 if name == "MAgentAdversarialPursuit-v0" else 10]
    assert (deeds >= least).all(), deeds


@pytest.mark.rotates
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", GAMES)
def test_whole_episodes(name):
    """1,000 episodes of up to 20 steps. Places in gather take long to draw: most of its episodes have its own."""
    rng, pair = np.random.default_rng(1), Pair(name, 20, map_size=GAMES[name][1], minimap_mode=True)
    for episode in range(1000):
        pair.reset(episode, None if name == "MAgentGather-v0" and episode % 50 else rng)
        while pair.step(choose(pair, rng)):
            pass
        assert pair.sim.arrays["ended"][0]


FIXED = [
    *(("MAgentBattle-v0", size) for size in (12, 13, 31, 45, 100, 110)),
    *(("MAgentBattlefield-v0", size) for size in (46, 52, 55, 80, 101)),
    *(("MAgentCombinedArms-v0", size) for size in (16, 17, 33, 45, 104)),
    *(("MAgentGather-v0", size) for size in (60, 75, 90, 120, 200)),
]


@pytest.mark.parametrize(("name", "size"), FIXED)
def test_fixed_starts(name, size):
    """MAgent2's own starts are ours, on maps of any size; on large ones its moves have another order."""
    rng, pair = np.random.default_rng(0), Pair(name, map_size=size)
    assert pair.agents == [f"{g}_{k}" for g, n in pair.env.agents(pair.cfg).items() for k in range(n)]
    pair.reset(0, own=True)
    pair.compare_state()
    for _ in range(10):
        if not pair.step(choose(pair, rng)):
            break
    else:
        pair.compare_state()


# ---- what chance decides ----


def wild(rng, moves, actions):
    """Attacks anywhere in 7 of 10 cases where there are attacks, and else moves."""
    attack = (rng.random(moves.shape) < 0.7) & (actions > moves)
    low, high = np.where(attack, moves, 0), np.where(attack, actions, moves)
    return rng.integers(low, high).astype(np.int32)


def engine_fight(pair, rng, steps):
    """What each group gets in a fight of MAgent2's engine, and how many of it are left."""
    engine, tables = pair.theirs.env, pair.tables
    engine.reset()
    pair.place()
    viewers = range(pair.known["FIRST_VIEWER"], pair.known["FIRST_VIEWER"] + pair.known["VIEWERS"])
    total, left = np.zeros(len(viewers)), np.zeros(len(viewers))
    for _ in range(steps):
        for g, handle in zip(viewers, pair.theirs.handles, strict=True):
            n = engine.get_num(handle)
            engine.set_action(handle, wild(rng, np.full(n, tables["moves"][g]), np.full(n, tables["actions"][g])))
        over = engine.step()
        total += [engine.get_reward(handle).sum(dtype=np.float64) for handle in pair.theirs.handles]
        left[:] = [engine.get_alive(handle).sum() for handle in pair.theirs.handles]
        engine.clear_dead()
        if over:
            break
    return np.concatenate([total, left])


@pytest.mark.rotates
@pytest.mark.parametrize("name", ["MAgentBattle-v0", "MAgentCombinedArms-v0", "MAgentGather-v0", "MAgentTigerDeer-v0"])
def test_fights_in_distribution(name):
    """Attacks in any number and order: 1,000 fights of each have the same mean returns and losses, within 5 errors."""
    n, steps, rng = 1000, 40, np.random.default_rng(0)
    pair = Pair(name, map_size=GAMES[name][1])
    pair.sim.reset(seed=0)
    pair.draw_start(rng, 0.05)
    pair.theirs.env.set_seed(12345)
    theirs = np.array([engine_fight(pair, rng, steps) for _ in range(n)])

    sim = Simulator(pair.env, n, device="cpu", autoreset_mode="disabled", map_size=GAMES[name][1])
    sim.reset(seed=3)
    sim.set_state({key: np.repeat(pair.sim.arrays[key], n, 0) for key in ("cell", "map")})
    agents = len(pair.agents)
    group = pair.tables["group"][:agents]
    moves, actions = (np.tile(pair.tables[key][group], (n, 1)) for key in ("moves", "actions"))
    total, over = np.zeros((n, agents)), np.zeros(n, bool)
    left = np.ones((n, agents), bool)
    for _ in range(steps):
        sim.arrays["action"][..., 0] = wild(rng, moves, actions)
        sim.step(np.flatnonzero(~over))
        total[~over] += sim.arrays["reward"][~over]
        left[~over] = sim.arrays["life"][~over, :agents] == 2
        over |= (sim.arrays["standing"] == 0).any(1)
    viewers = range(pair.known["FIRST_VIEWER"], pair.known["FIRST_VIEWER"] + pair.known["VIEWERS"])
    ours = np.array([x[:, group == g].sum(1) for x in (total, left) for g in viewers]).T
    error = np.sqrt((ours.var(0) + theirs.var(0)) / n)
    assert (error[: len(viewers)] > 0).all()
    assert (~left).sum() > n / 20
    assert (abs(ours.mean(0) - theirs.mean(0)) <= 5 * error).all(), (ours.mean(0), theirs.mean(0), error)


@pytest.mark.parametrize("name", ["MAgentAdversarialPursuit-v0", "MAgentTigerDeer-v0"])
def test_drawn_places_in_distribution(name):
    """All columns and rows of the map are as full as in MAgent2, within 5 standard errors; nobody stands on another."""
    n, theirs_n, size = 4000, 400, GAMES[name][1]
    pair = Pair(name, map_size=size)
    sim = Simulator(pair.env, n, device="cpu", autoreset_mode="disabled", map_size=size)
    sim.reset(seed=1)
    group = np.concatenate([pair.tables["group"], np.full(pair.known["WALLS"], pair.known["GROUPS"])])
    cell = np.asarray(sim.arrays["cell"])
    ours = np.stack(np.divmod(cell, pair.known["STRIDE"]), -1)[..., ::-1] - pair.known["MARGIN"]
    body = np.where(group < pair.known["GROUPS"], np.arange(len(group)), -2)
    assert (np.take_along_axis(sim.arrays["map"], cell, 1) == body).all()

    engine, theirs = pair.theirs.env, []
    engine.set_seed(12345)
    for _ in range(theirs_n):
        pair.theirs.reset()
        walls = np.asarray(engine._get_walls_info())
        inner = walls[((walls > 0) & (walls < size - 1)).all(1)]
        theirs.append(np.concatenate([*(engine.get_pos(handle) for handle in engine.get_handles()), inner]))
    for g in range(pair.known["GROUPS"] + 1):
        for axis in range(2):
            share = [np.eye(size)[xy[:, group == g, axis]].mean(1) for xy in (ours, np.array(theirs))]
            error = np.sqrt(share[0].var(0) / n + share[1].var(0) / theirs_n)
            np.testing.assert_array_equal(share[0].any(0), share[1].any(0))
            assert (abs(share[0].mean(0) - share[1].mean(0)) <= 5 * error).all()
