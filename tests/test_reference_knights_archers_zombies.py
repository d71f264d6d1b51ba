"""KnightsArchersZombies against PettingZoo's butterfly.knights_archers_zombies_v11.

The original draws our numbers. Its agents' directions are replaced by vectors that turn without rounding errors, as
ours do (`Exact`): after that all places, rewards and ends are equal, and so are observations, in which only a distance
is rounded more than once. `test_original_rounds_ties` shows what those errors do to the original as it is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pygame
import pytest
from draws import integers
from pettingzoo.butterfly.knights_archers_zombies.knights_archers_zombies import parallel_env
from pettingzoo.butterfly.knights_archers_zombies.src import players
from pettingzoo.butterfly.knights_archers_zombies.src.interval import Interval
from pettingzoo.butterfly.knights_archers_zombies.src.weapons import Arrow, Sword
from pettingzoo.butterfly.knights_archers_zombies.src.zombie import Zombie

from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.knights_archers_zombies import knights_archers_zombies as kaz
from gpuzoo.envs.knights_archers_zombies.knights_archers_zombies import KnightsArchersZombies

pytestmark = pytest.mark.rotates

METHODS = {ours: theirs for theirs, ours in kaz.METHODS.items()}
CONFIGS: dict[str, dict[str, Any]] = {
    "default": {},
    "masked": {"observation_type": "masked", "spawn_delay": 3},
    "sequence": {"observation_type": "sequence", "spawn_delay": 2, "max_zombies": 30},
    "line death": {"line_death": True, "spawn_delay": 6},
    "knights": {"num_archers": 0, "num_knights": 3, "spawn_delay": 1, "max_zombies": 40},
    "archers": {"num_archers": 3, "num_knights": 0, "spawn_delay": 4, "max_arrows": 2},
    "one": {"num_archers": 1, "num_knights": 0, "max_arrows": 1, "spawn_delay": 1},
    "many": {"num_archers": 12, "num_knights": 11, "spawn_delay": 1, "max_zombies": 50, "max_arrows": 17},
    "deathless": {"killable_archers": False, "killable_knights": False, "spawn_delay": 1, "max_zombies": 60},
    "deathless archers": {"killable_archers": False, "spawn_delay": 1, "max_zombies": 30, "line_death": True},
}


class Exact(pygame.Vector2):
    """A direction of tens of degrees, without rounding errors."""

    def __init__(self, k: int) -> None:
        self.k = k % kaz.DIRECTIONS
        super().__init__(kaz.heading(self.k))

    def rotate(self, angle: float) -> Exact:
        return Exact(self.k + round(angle / 10))


class Drawn:
    """The original's generator, which gives what ours draws."""

    def __init__(self) -> None:
        self.wobbles: list[int] = []
        self.place = 0

    def integers(self, low: int, high: int) -> int:
        return self.wobbles.pop(0) if (low, high) == (0, 10) else self.place + low


class Pair:
    """A batch of ours, of which one env at a time is put into the original."""

    def __init__(self, count: int, limit: int = 900, **config: Any) -> None:
        self.sim = Simulator(
            KnightsArchersZombies, count, device="cpu", autoreset_mode="disabled", max_episode_steps=limit, **config
        )
        self.sim.reset(seed=0)
        self.cfg = self.sim.program.cfg
        self.theirs = {name: value for name, value in config.items() if name != "observation_type"}
        self.theirs |= {"obs_method": METHODS[self.cfg.observation_type], "max_cycles": limit}

    def original(self) -> Any:
        env = parallel_env(**self.theirs)
        env.reset(seed=0)
        env.unwrapped.np_random = Drawn()
        for player in env.unwrapped.agent_map.values():
            player.direction = Exact(0)
        return env

    def inject(self, env: Any, state: dict[str, np.ndarray], k: int) -> None:
        """Puts env k of a state into an original that has just been reset."""
        raw = env.unwrapped
        raw.zombie_spawn_interval._current_step = int(state["spawn_timer"][k])
        raw.frames = int(state["elapsed_steps"][k])
        for a, player in enumerate(raw.agent_map.values()):
            player.rect.center = int(state["x"][k, a]), int(state["y"][k, a])
            player.direction = Exact(int(state["direction"][k, a]))
            player._update_image()
            player.score = int(state["score"][k, a])
            if state["caught"][k, a]:
                raw.player_list.remove(player)
            pause = int(state["pause"][k, a])
            if pause >= 0:
                archer = players.is_archer(player)
                player.timeout = Interval(4 if archer else 7)
                player.timeout._current_step = pause
                if not archer and pause < 6:
                    sword = Sword(player)
                    sword.arc = 60 - 20 * pause
                    sword.act()
                    player.weapons.add(sword)
        agents = list(raw.agent_map.values())
        for i in range(int(state["arrows"][k])):
            archer = agents[int(state["archer"][k, i])]
            arrow = Arrow(archer)
            arrow.direction = Exact(int(state["arrow_direction"][k, i]))
            arrow.rect.topleft = int(state["arrow_x"][k, i]), int(state["arrow_y"][k, i])
            archer.weapons.add(arrow)
        for i in range(int(state["zombies"][k])):
            self.add_zombie(raw, int(state["zombie_x"][k, i]), int(state["zombie_y"][k, i]))

    def add_zombie(self, raw: Any, x: int, y: int) -> None:
        zombie = Zombie(raw.np_random)
        zombie.rect.topleft = x, y
        zombie.wobble_interval._current_step = (y - 5) // 5 % 3
        raw.zombie_list.add(zombie)

    def draws(self) -> tuple[np.ndarray, np.ndarray]:
        """For the next step: the wobbles of all zombies, and the places of the new ones."""
        agents, zombies = self.cfg.num_archers + self.cfg.num_knights, self.cfg.max_zombies
        wobbles = np.stack([integers(self.sim, 1, 10, agent=agents + z) for z in range(zombies)], 1)
        return wobbles, integers(self.sim, 0, 1151 - 69)

    def feed(self, env: Any, wobbles: np.ndarray, place: int, k: int) -> None:
        """Gives the original our draws: those of the zombies whose third step this was, by their index after it."""
        raw, s = env.unwrapped, self.sim.arrays
        y = s["zombie_y"][k, : int(s["zombies"][k])]
        raw.np_random.wobbles = [int(wobbles[z]) for z in range(len(y)) if y[z] > 5 and (y[z] - 5) // 5 % 3 == 0]
        raw.np_random.place = int(place)

    def compare(self, env: Any, agents: list[str], k: int, out: tuple[Any, ...]) -> None:
        raw, s = env.unwrapped, self.sim.arrays
        observations, rewards, terminations, truncations = out[:4]
        assert not raw.np_random.wobbles
        for a, name in enumerate(env.possible_agents):
            player = raw.agent_map[name]
            assert bool(s["dead"][k, a]) == (name in raw.dead_agents)
            if name not in agents:
                continue
            self.compare_rows(s["observation"][k, a], observations[name])
            assert s["reward"][k, a] == rewards[name], name
            assert bool(s["terminated"][k, a]) == terminations[name]
            assert bool(s["truncated"][k, a]) == truncations[name]
            assert [s["x"][k, a], s["y"][k, a]] == list(player.rect.center)
            assert s["direction"][k, a] == player.direction.k
            if self.cfg.caught_are_lost and not s["dead"][k, a]:
                assert bool(s["caught"][k, a]) == (player not in raw.player_list)
            timeout = -1 if player.timeout is None else player.timeout._current_step
            assert s["pause"][k, a] == timeout
        archers = [player for player in raw.agent_map.values() if players.is_archer(player)]
        arrows = [
            (i, *arrow.rect.topleft, arrow.direction.k) for i, player in enumerate(archers) for arrow in player.weapons
        ]
        n = int(s["arrows"][k])
        ours = np.stack([s[key][k, :n] for key in ("archer", "arrow_x", "arrow_y", "arrow_direction")], 1)
        assert list(map(tuple, ours.tolist())) == arrows
        assert (s["archer"][k, n:] == -1).all()
        n = int(s["zombies"][k])
        zombies = [zombie.rect.topleft for zombie in raw.zombie_list]
        assert list(zip(s["zombie_x"][k, :n].tolist(), s["zombie_y"][k, :n].tolist(), strict=True)) == zombies
        assert s["spawn_timer"][k] == raw.zombie_spawn_interval._current_step

    def compare_rows(self, ours: np.ndarray, theirs: np.ndarray) -> None:
        """All numbers equal but for distances, which have four roundings here: of 1/2 unit of the last place each."""
        ours = ours.reshape(-1, theirs.shape[1])
        assert len(theirs) == len(ours) or self.cfg.observation_type == "sequence"
        assert not ours[len(theirs) :].any()
        ours, theirs = ours[: len(theirs)], theirs.astype(np.float32)
        np.testing.assert_array_equal(np.delete(ours, -5, 1), np.delete(theirs, -5, 1))
        np.testing.assert_allclose(ours[:, -5], theirs[:, -5], rtol=2 * 2.0**-23, atol=0)


def wide_states(rng: np.random.Generator, pair: Pair) -> dict[str, np.ndarray]:
    """Agents anywhere, in any direction and phase, among arrows and zombies that are often near them."""
    cfg, count = pair.cfg, pair.sim.num_envs
    agents, archers = cfg.num_archers + cfg.num_knights, cfg.num_archers
    state = {name: array.copy() for name, array in pair.sim.state().items()}
    x, y = rng.integers(116, 1165, (count, agents)), rng.integers(16, 705, (count, agents))
    y = np.where(rng.random((count, agents)) < 0.2, rng.choice([16, 17, 30, 690, 704], (count, agents)), y)
    crowded = rng.random((count, 1)) < 0.5
    x = np.where(crowded, np.clip(x[:, :1] + rng.integers(-150, 150, x.shape), 116, 1164), x)
    y = np.where(crowded, np.clip(y[:, :1] + rng.integers(-150, 150, x.shape), 16, 704), y)
    pause = rng.integers(-1, 7, (count, agents))
    pause[:, :archers] = rng.integers(-1, 4, (count, archers))
    direction = rng.integers(0, 36, (count, agents))
    for k in range(count):
        n = int(rng.integers(0, cfg.max_zombies + 1))
        near = rng.integers(0, agents, n)
        spread = rng.choice([30, 60, 500], n)
        zx = np.clip(x[k, near] + rng.integers(-spread, spread + 1), 69, 1151)
        zy = np.clip(y[k, near] + rng.integers(-spread, spread + 1), 5, 685) // 5 * 5
        if rng.random() < 0.7:  # most have no zombie in its last step
            zy = np.minimum(zy, 680)
        state["zombies"][k], state["zombie_x"][k, :n], state["zombie_y"][k, :n] = n, zx, zy
        m = int(rng.integers(0, cfg.max_arrows + 1)) if archers else 0
        state["archer"][k] = -1
        state["arrows"][k], state["archer"][k, :m] = m, np.sort(rng.integers(0, max(archers, 1), m))
        state["arrow_direction"][k, :m] = rng.integers(0, 36, m)
        target = rng.integers(0, max(n, 1), m)
        for axis, size in (("x", 1280), ("y", 720)):
            near_zombie = state[f"zombie_{axis}"][k, target] + rng.integers(-100, 100, m)
            free = rng.integers(0, size + 1, m)
            state[f"arrow_{axis}"][k, :m] = np.clip(np.where(rng.random(m) < 0.6, near_zombie, free), 0, size)
    state |= {"x": x, "y": y, "pause": pause, "direction": direction}
    state["score"] = rng.integers(0, 3, (count, agents))
    state["spawn_timer"] = rng.integers(0, cfg.spawn_delay, count)
    state["elapsed_steps"] = rng.choice([0, 7, 898, 899], count)
    if not (cfg.killable_archers and cfg.killable_knights):
        can_die = np.array([cfg.killable_archers] * archers + [cfg.killable_knights] * cfg.num_knights)
        state["caught"] = (rng.random((count, agents)) < 0.3) & ~can_die
    return state


def actions_of(pair: Pair, rng: np.random.Generator) -> np.ndarray:
    shape = pair.sim.arrays["action"].shape[:2]
    return rng.choice(6, shape, p=[0.25, 0.1, 0.15, 0.15, 0.3, 0.05]).astype(np.int32)


@pytest.mark.parametrize("name", CONFIGS)
def test_one_step(name: str) -> None:
    """40 wide states of each configuration."""
    count = 10 if name == "many" else 40
    pair, rng = Pair(count, **CONFIGS[name]), np.random.default_rng(list(CONFIGS).index(name))
    state = wide_states(rng, pair)
    pair.sim.set_state(state)
    wobbles, places = pair.draws()
    actions = actions_of(pair, rng)
    pair.sim.arrays["action"][..., 0] = actions
    pair.sim.step()
    global_states = pair.sim.global_state()
    deaths = points = 0
    env = pair.original()
    for k in range(count):
        env.reset()
        pair.inject(env, state, k)
        agents = env.agents[:]
        pair.feed(env, wobbles[k], places[k], k)
        out = env.step(dict(zip(agents, actions[k].tolist(), strict=True)))
        pair.compare(env, agents, k, out)
        theirs = env.state().astype(np.float32)
        np.testing.assert_array_equal(global_states[k], theirs.ravel())
        points += int(pair.sim.arrays["score"][k].sum())
        deaths += int(pair.sim.arrays["dead"][k].sum())
    assert points > 0
    assert (deaths > 0) != (name == "deathless")


def follow(name: str, count: int, limit: int, seed: int) -> float:
    """Plays whole episodes beside the original, by agents that mostly walk and attack, and returns all rewards."""
    pair, rng = Pair(count, limit, **CONFIGS[name]), np.random.default_rng(seed)
    envs = [pair.original() for _ in range(count)]
    for k, env in enumerate(envs):
        first = [env.unwrapped.observe(agent) for agent in env.possible_agents]
        for a, rows in enumerate(first):
            pair.compare_rows(pair.sim.arrays["observation"][k, a], rows)
    running = np.ones(count, bool)
    points = 0.0
    while running.any():
        actions = actions_of(pair, rng)
        wobbles, places = pair.draws()
        pair.sim.arrays["action"][..., 0] = actions
        pair.sim.step(np.flatnonzero(running))
        for k in np.flatnonzero(running):
            env = envs[k]
            agents = env.agents[:]
            pair.feed(env, wobbles[k], places[k], k)
            out = env.step({agent: int(actions[k, env.possible_agents.index(agent)]) for agent in agents})
            pair.compare(env, agents, k, out)
            assert bool(pair.sim.arrays["ended"][k]) == (not env.agents)
            running[k] = bool(env.agents)
        points += float(pair.sim.arrays["reward"].sum())
    return points


@pytest.mark.parametrize("name", CONFIGS)
def test_whole_episodes(name: str) -> None:
    """Some long episodes of each configuration."""
    points = follow(name, *((1, 60) if name == "many" else (3, 150)), seed=1)
    assert points > 0 or name in ("default", "one")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CONFIGS)
def test_many_episodes(name: str) -> None:
    """1,010 short episodes, all configurations together."""
    follow(name, 20 if name == "many" else 110, limit=40, seed=2)


def test_bodies_are_those_of_turned_pictures() -> None:
    """Sizes of turned pictures, as pygame turns them, also with the errors of 1,000 turns of the original."""
    player = players.Knight("knight_0")
    table = KnightsArchersZombies().tables(KnightsArchersZombies.Config())["turned_size"]
    rng, k = np.random.default_rng(0), 0
    for _ in range(1000):
        turn = int(rng.choice([-1, 1]))
        k = (k + turn) % 36
        player.direction = player.direction.rotate(10 * turn)
        player._update_image()
        assert player.rect.size == (table[k], table[k])


def test_original_rounds_ties() -> None:
    """Moves, arrows and maces of the original as it is: ours, or one pixel beside where the exact number is a tie."""
    tables = KnightsArchersZombies().tables(KnightsArchersZombies.Config())
    rng, k, other = np.random.default_rng(0), 0, 0
    archer, knight = players.Archer("archer_0"), players.Knight("knight_0")
    for _ in range(2000):
        turn = int(rng.choice([-1, 1]))
        k = (k + turn) % 36
        for player in (archer, knight):
            player.direction = player.direction.rotate(10 * turn)
            player._update_image()
        arrow = Arrow(archer)
        before = arrow.rect.topleft
        arrow.act()
        sword = Sword(knight)
        for s, arc in enumerate(kaz.SWING):
            sword.act()
            side = (32 + int(tables["turned_size"][k])) / 2
            for axis, name in enumerate("xy"):
                exact = kaz.heading(k + arc // 10)[axis] * side
                start = knight.rect.center[axis] - 16
                found = sword.rect.topleft[axis] - start
                ours = int(tables[f"mace_{name}"][6 * k + s])
                assert found == ours or (abs(found - ours) == 1 and exact == round(exact))
                other += found != ours
        for axis, name in enumerate("xy"):
            part = kaz.heading(k)[axis]
            found, ours = round(archer.direction[axis] * 25), int(tables[f"walk_{name}"][k])
            assert found == ours or (abs(found - ours) == 1 and abs(part) == 0.5)
            other += found != ours
            found, ours = arrow.rect.topleft[axis] - before[axis], int(tables[f"fly_{name}"][k])
            assert found == ours or (abs(found - ours) == 1 and part in (-1, 0, 1))
            other += found != ours
    assert other > 0  # so there is something to say about it


def test_points_at_once() -> None:
    """Without PettingZoo's delay, rewards are the points of the step."""
    pair = Pair(200, delayed_rewards=True, spawn_delay=1, max_zombies=40)
    now = Pair(200, delayed_rewards=False, spawn_delay=1, max_zombies=40)
    rng = np.random.default_rng(0)
    state = wide_states(rng, pair)
    actions = actions_of(pair, rng)
    for each in (pair, now):
        each.sim.set_state(state)
        each.sim.arrays["action"][..., 0] = actions
        each.sim.step()
    np.testing.assert_array_equal(pair.sim.arrays["score"], now.sim.arrays["score"])
    np.testing.assert_array_equal(now.sim.arrays["reward"], now.sim.arrays["score"])
    assert (pair.sim.arrays["reward"] != now.sim.arrays["reward"]).any()


def test_caught_may_stay() -> None:
    """With `caught_are_lost=False` those whom zombies cannot kill defend until one gets through."""
    options: dict[str, Any] = {"killable_archers": False, "killable_knights": False, "spawn_delay": 1}
    ends = []
    for lost in (True, False):
        pair = Pair(50, caught_are_lost=lost, **options)
        state = {name: array.copy() for name, array in pair.sim.state().items()}
        state["zombies"][:] = 4
        state["zombie_x"][:, :4], state["zombie_y"][:, :4] = state["x"][0], 600
        pair.sim.set_state(state)
        pair.sim.arrays["action"][..., 0] = 5
        pair.sim.step()
        ends.append(bool(pair.sim.arrays["terminated"].all()))
        assert not pair.sim.arrays["dead"].any()
    assert ends == [True, False]


def test_obs_method() -> None:
    """PettingZoo's option and its values are taken, and its images are refused."""
    for theirs, ours in kaz.METHODS.items():
        assert KnightsArchersZombies.parameters_of({"obs_method": theirs}) == {"observation_type": ours}
    with pytest.raises(ValueError, match="obs_method must be one of"):
        KnightsArchersZombies.parameters_of({"obs_method": "image"})


def test_starts_are_the_originals() -> None:
    """Places and the spread of new zombies."""
    s = Simulator(KnightsArchersZombies, 4000, device="cpu", autoreset_mode="disabled", spawn_delay=1)
    s.reset(seed=0)
    s.arrays["action"][...] = 5
    s.step()
    x = s.arrays["zombie_x"][:, 0]
    assert x.min() == 69
    assert x.max() == 1150
    assert math.isclose(x.mean(), (69 + 1150) / 2, abs_tol=5 * 312 / math.sqrt(4000))
