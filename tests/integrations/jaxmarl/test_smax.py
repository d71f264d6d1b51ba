"""SMAX against JaxMARL's, from states drawn at random and over whole episodes, with the random numbers of our game.

XLA fuses products with sums and adds in another order, so places agree to some float32 roundings of numbers up to 32,
which a world step multiplies where two units almost coincide: `NEAR` is what eight of them leave. Where a number comes
nearer than `CLOSE` to a threshold (a range, a sight, a wall, a tie), the two may decide differently, so the env is left
out of the comparison.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jaxmarl
import numpy as np
import pytest
import smax_random
from draws import integers, units
from jaxmarl.environments.smax import Scenario, map_name_to_scenario
from jaxmarl.environments.smax.heuristic_enemy import HeuristicPolicyState

from gpuzoo import Simulator
from gpuzoo.envs.smax.battle import SCENARIOS, UNITS, armies
from gpuzoo.envs.smax.smax import SMAX
from gpuzoo.envs.smax.smax_continuous import SMAXContinuous

NEAR, CLOSE = 2e-4, 1e-5
KINDS = list(UNITS.values())
RANGE, SIGHT, RADIUS, HEALTH, SPEED = (
    np.array([getattr(unit, name) for unit in KINDS], np.float32)
    for name in ("attack_range", "sight", "radius", "health", "velocity")
)
OURS_ONLY = ("scenario", "enemy_policy", "dead_units_leave")
OPTIONS = [
    {"scenario": "2s3z", "enemy_policy": "agents"},
    {"scenario": "5m_vs_6m", "enemy_policy": "agents", "use_self_play_reward": True, "see_enemy_actions": False},
    {"scenario": "smacv2_5_units", "attack_mode": "random", "won_battle_bonus": 3.0},
    {"scenario": "3s_vs_5z", "enemy_shoots": False, "walls_cause_death": False},
    {"scenario": "smacv2_5_units", "observation_type": "conic"},
    {"scenario": "5m_vs_6m", "observation_type": "conic", "enemy_policy": "agents", "see_enemy_actions": False},
    {"scenario": "2s3z", "world_steps_per_env_step": 3, "time_per_step": 0.1, "map_width": 24.0, "map_height": 40.0},
    {"scenario": "2M1h_vs_3zg"},
]
smax_random.install()


def scenario_of(name):
    """JaxMARL's scenario: its own, or one made as it makes them."""
    if name in SCENARIOS:
        return map_name_to_scenario(name)
    found = armies(name)
    types = jnp.array(found.allies + found.enemies, jnp.uint8)
    return Scenario(types, len(found.allies), len(found.enemies), found.random, found.random)


class Both:
    """Our batch, and their game."""

    def __init__(self, n, game=SMAX, **options):
        self.n = n
        self.sim = Simulator(game, n, autoreset_mode="disabled", device="cpu", **options)
        self.sim.reset(seed=0)
        found = armies(self.sim.cfg.scenario)
        self.allies, self.enemies = len(found.allies), len(found.enemies)
        self.units = self.allies + self.enemies
        self.random = found.random
        self.army = np.array(found.allies + found.enemies)
        self.heuristic = self.sim.cfg.enemy_policy == "heuristic"
        self.continuous = game is SMAXContinuous
        plain = {k: v for k, v in options.items() if k not in OURS_ONLY}
        self.env = jaxmarl.make(
            "HeuristicEnemySMAX" if self.heuristic else "SMAX", scenario=scenario_of(self.sim.cfg.scenario),
            action_type="continuous" if self.continuous else "discrete", **plain,
        )  # fmt: skip
        self.inner = self.env._env if self.heuristic else self.env
        self.agents = self.env.agents
        self.size = np.array([self.sim.cfg.map_width, self.sim.cfg.map_height], np.float32)
        self.advance = jax.jit(jax.vmap(self.env.step_env))
        self.observe = jax.jit(jax.vmap(self.env.get_obs))
        self.masks = jax.jit(jax.vmap(self.env.get_avail_actions))
        self.world = jax.jit(jax.vmap(self.inner.get_world_state))
        self.sequence = jax.jit(jax.vmap(lambda *what: self.env.step_env(*what, True)))

    def theirs(self, values):
        """Our states as theirs."""
        inner = jaxmarl.environments.smax.smax_env.State(
            unit_positions=jnp.stack([values["x"], values["y"]], -1),
            unit_alive=jnp.array(values["health"] > 0),
            unit_teams=jnp.tile((jnp.arange(self.units) >= self.allies).astype(jnp.float32), (self.n, 1)),
            unit_health=jnp.array(values["health"]),
            unit_types=jnp.array(values["type"], jnp.uint8),
            unit_weapon_cooldowns=jnp.array(values["cooldown"]),
            prev_movement_actions=jnp.stack([values["move_x"], values["move_y"]], -1),
            prev_attack_actions=jnp.array(values["attack"], jnp.int32),
            step=jnp.array(values["elapsed_steps"], jnp.int32),
            done=jnp.zeros(self.n, bool),
        )
        if not self.heuristic:
            return inner
        goal = jnp.stack([values["goal_x"], values["goal_y"]], -1)
        policy = HeuristicPolicyState(goal, jnp.array(values["last_attacked"], jnp.int32))
        return jaxmarl.environments.smax.heuristic_enemy_smax_env.State(inner, policy)

    def fields(self, state):
        """Their states in our fields."""
        found = self.fields_of(state.state if self.heuristic else state)
        if self.heuristic:
            policy = state.enemy_policy_state
            goal = np.asarray(policy.default_target)
            found |= {"goal_x": goal[..., 0], "goal_y": goal[..., 1]}
            found["last_attacked"] = np.asarray(policy.last_attacked_enemy)
        return found

    def fields_of(self, inner):
        """The same without the memory of the heuristic."""
        found = {
            "x": inner.unit_positions[..., 0], "y": inner.unit_positions[..., 1], "health": inner.unit_health,
            "type": inner.unit_types, "cooldown": inner.unit_weapon_cooldowns,
            "move_x": inner.prev_movement_actions[..., 0], "move_y": inner.prev_movement_actions[..., 1],
            "attack": inner.prev_attack_actions, "elapsed_steps": inner.step,
        }  # fmt: skip
        return {name: np.asarray(x) for name, x in found.items()}

    def key(self):
        return smax_random.key(self.sim, self.units, splits=1 + (self.heuristic and self.continuous))

    def target_of(self, attack):
        """Whom an attack hits, (n, units)."""
        k, u = attack - 5, np.arange(self.units)
        return np.where(attack < 5, u, np.where(u < self.allies, self.allies + k, self.allies - 1 - k))

    def margin(self, values):
        """How near the numbers of one state come to a threshold, (n,); dead units do not count."""
        at = np.stack([values["x"], values["y"]], -1).astype(np.float64)
        alive, kinds = values["health"] > 0, values["type"].astype(int)
        delta = at[:, :, None] - at[:, None]
        away = np.hypot(delta[..., 0], delta[..., 1])
        team = np.arange(self.units) < self.allies
        opposed = team[:, None] != team
        other = ~np.eye(self.units, dtype=bool)
        pairs = alive[:, :, None] & alive[:, None] & other
        conic = self.sim.cfg.observation_type == "conic"
        seen = other & conic | pairs
        near = least(np.abs(away - SIGHT[kinds][:, :, None]), seen)
        near = np.minimum(near, least(np.abs(away - RANGE[kinds][:, :, None]), pairs & opposed))
        near = np.minimum(near, np.where(least(away, pairs) < 0.05, 0.0, 1.0))  # where a push multiplies roundings
        if conic:
            turn = np.arctan2(-delta[..., 1], -delta[..., 0]) * 16 / np.pi
            near = np.minimum(near, least(np.abs(turn - np.round(turn)), seen))
        if self.heuristic:
            far = np.where(pairs & opposed, away, 1e6 * (1 + np.arange(self.units)))[:, self.allies :]
            near = np.minimum(near, np.diff(np.sort(far, -1), axis=-1).min((1, 2)))
            ways = np.abs(np.abs(delta[..., 0]) - np.abs(delta[..., 1]))
            near = np.minimum(near, least(ways, pairs & opposed))
            goal = np.stack([values["goal_x"], values["goal_y"]], -1)
            goal = np.where((goal == 0).all(-1, keepdims=True), self.size - at[:, self.allies :], goal)
            for start in (at[:, self.allies :], 0.0):
                way = np.abs(goal - start)
                near = np.minimum(near, np.abs(way[..., 0] - way[..., 1]).min(-1))
        return near

    def margin_of_step(self, states, moves, attacks):
        """The same over the world steps: attacks, cooldowns, walls. ``states`` are those before each of them."""
        near = np.full(self.n, np.inf)
        every = np.arange(self.n)[:, None]
        target = self.target_of(attacks)
        for values in states:
            at = np.stack([values["x"], values["y"]], -1).astype(np.float64)
            alive, kinds = values["health"] > 0, values["type"].astype(int)
            away = np.linalg.norm(at - at[every, target], axis=-1)
            near = np.minimum(near, least(np.abs(away - RANGE[kinds]), alive & (attacks >= 5)))
            waits = np.abs(values["cooldown"])
            near = np.minimum(near, least(waits, alive & (waits > 0)))
            to = at + moves * SPEED[kinds][..., None] * self.sim.cfg.time_per_step
            for wall in (0.0, self.size):
                near = np.minimum(near, least(np.abs(to - wall).min(-1), alive))
            delta = np.clip(to, 0, self.size)
            apart = np.linalg.norm(delta[:, :, None] - delta[:, None], axis=-1)
            both = alive[:, :, None] & alive[:, None] & ~np.eye(self.units, dtype=bool)
            near = np.minimum(near, np.where(least(apart, both) < 0.05, 0.0, 1.0))
        return near

    def assert_same_views(self, state, kept):
        """Observations, masks and world states of our present states, where ``kept``."""
        arrays, shown = self.sim.arrays, self.observe(state)
        masks = None if self.continuous else self.masks(state)
        for a, agent in enumerate(self.agents):
            theirs = np.asarray(shown[agent])
            ours = arrays["observation"][:, a, : theirs.shape[1]]
            np.testing.assert_allclose(ours[kept], theirs[kept], rtol=NEAR, atol=NEAR)
            if masks is not None:
                theirs = np.asarray(masks[agent])
                np.testing.assert_array_equal(arrays["action_mask"][kept, a, : theirs.shape[1]], theirs[kept])
        world = np.asarray(self.world(state.state if self.heuristic else state))
        np.testing.assert_allclose(np.asarray(self.sim.global_state())[kept], world[kept], rtol=NEAR, atol=NEAR)

    def step(self, values, actions, near):
        """Both make a step from ours; returns where they must agree, their next states and rewards."""
        state, key = self.theirs(values), self.key()
        named = {agent: jnp.array(actions[:, a]) for a, agent in enumerate(self.agents)}
        self.sim.arrays["action"][...] = actions.reshape(self.sim.arrays["action"].shape)
        self.sim.step()
        _, after, rewards, done, _ = self.advance(key, state, named)
        ticks = self.sequence(key, state, named)
        between = [jax.tree.map(lambda x, k=k: x[:, k], ticks) for k in range(ticks.step.shape[1] - 1)]
        names = ("x", "y", "health", "type", "cooldown")
        inside = [dict(zip(names, (np.asarray(x) for x in (
            s.unit_positions[..., 0], s.unit_positions[..., 1], s.unit_health, s.unit_types, s.unit_weapon_cooldowns
        )), strict=True)) for s in between]  # fmt: skip
        last = after.state if self.heuristic else after
        moves, attacks = np.asarray(last.prev_movement_actions), np.asarray(last.prev_attack_actions)
        near = np.minimum(near, self.margin_of_step([values, *inside], moves, attacks))
        kept = near > CLOSE
        arrays, ours, want = self.sim.arrays, self.sim.state(), self.fields(after)
        for name in ("health", "type", "attack", "elapsed_steps", "last_attacked"):
            if name in want:
                np.testing.assert_array_equal(ours[name][kept], want[name][kept], err_msg=name)
        for name in want.keys() - {"health", "type", "attack", "elapsed_steps", "last_attacked"}:
            np.testing.assert_allclose(ours[name][kept], want[name][kept], rtol=NEAR, atol=NEAR, err_msg=name)
        won, lost = ours["winner"] == 1, ours["winner"] == 2
        all_done = np.asarray(done["__all__"])
        for a, agent in enumerate(self.agents):
            paid = arrays["reward"][:, a]
            np.testing.assert_allclose(paid[kept], np.asarray(rewards[agent])[kept], rtol=1e-5, atol=1e-5)
            over = (arrays["terminated"] | arrays["truncated"])[:, a]
            np.testing.assert_array_equal(over[kept], all_done[kept])
        alive = want["health"] > 0
        ally, enemy = alive[:, : self.allies].any(1), alive[:, self.allies :].any(1)
        np.testing.assert_array_equal(won[kept], (ally & ~enemy)[kept])
        np.testing.assert_array_equal(lost[kept], (enemy & ~ally)[kept])
        return kept, after


def least(x, where):
    """Over all axes but the first."""
    return np.where(where, x, np.inf).reshape(len(x), -1).min(1)


def drawn(both, rng):
    """Battles at any moment: units in crowds or spread, hurt, dead, with any cooldowns and last actions."""
    n, count = both.n, both.units
    spread = rng.choice([2.0, 4.0, 9.0], (n, 1, 1))
    centre = rng.uniform(0.1, 0.9, (n, 1, 2)) * both.size
    at = np.clip(centre + rng.uniform(-1, 1, (n, count, 2)) * spread * np.sqrt(count / 6), -0.2, both.size + 0.2)
    kinds = rng.integers(0, 6, (n, count)) if both.random else np.tile(both.army, (n, 1))
    full = HEALTH[kinds]
    health = np.where(rng.random((n, count)) < 0.5, full, np.ceil(rng.random((n, count)) * full))
    dead = rng.random((n, count)) < rng.choice([0.0, 0.2, 0.8], (n, 1))
    dead[np.arange(n), rng.integers(0, both.allies, n)] = False
    dead[np.arange(n), both.allies + rng.integers(0, both.enemies, n)] = False
    ready = rng.random((n, count)) < 0.4
    way = np.array([[0, 1], [1, 0], [0, -1], [-1, 0], [0, 0]])[rng.integers(0, 5, (n, count))]
    opponents = np.where(np.arange(count) < both.allies, both.enemies, both.allies)
    attacks = (rng.random((n, count)) < 0.4) & (way == 0).all(-1)
    target = rng.integers(0, 10**6, (n, count)) % opponents
    last = np.where(rng.random((n, both.enemies)) < 0.5, -1, rng.integers(0, both.allies, (n, both.enemies)))
    goal = rng.uniform(0, 1, (n, both.enemies, 2)) * both.size
    begins = (rng.random((n, 1, 1)) < 0.2) & (last == -1)[..., None]
    goal = np.where(begins, 0.0, goal)
    return {
        "x": at[..., 0].astype(np.float32), "y": at[..., 1].astype(np.float32),
        "health": np.where(dead, 0, health).astype(np.float32), "type": kinds.astype(np.int32),
        "cooldown": np.where(ready, 0, rng.uniform(-0.5, 1.5, (n, count))).astype(np.float32),
        "move_x": way[..., 0].astype(np.float32), "move_y": way[..., 1].astype(np.float32),
        "attack": np.where(attacks, 5 + target, 0).astype(np.int32),
        "goal_x": goal[..., 0].astype(np.float32), "goal_y": goal[..., 1].astype(np.float32),
        "last_attacked": last.astype(np.int32), "elapsed_steps": rng.integers(0, 101, n).astype(np.int32),
    }  # fmt: skip


def chosen(both, rng):
    """Legal actions, attacks in half of the cases where there is one; any numbers where actions are continuous."""
    if both.continuous:
        actions = rng.random((both.n, len(both.agents), 4)).astype(np.float32)
        return np.where(rng.random(actions.shape) < 0.1, np.round(actions), actions)
    mask = both.sim.arrays["action_mask"] > 0
    weight = rng.random(mask.shape) * mask
    weight[..., 5:] += mask[..., 5:] * (rng.random(mask.shape[:2]) < 0.5)[..., None]
    return weight.argmax(-1).astype(np.int32)


def compare_steps(game=SMAX, n=None, **options):
    many = armies(options["scenario"])
    n = n or int(np.clip(1_000_000 // len(many.allies + many.enemies) ** 2, 300, 20_000))
    both, rng = Both(n, game, **options), np.random.default_rng(0)
    values = drawn(both, rng)
    both.sim.set_state(values)
    near = both.margin(values)
    both.assert_same_views(both.theirs(values), near > CLOSE)
    actions = chosen(both, rng)
    if both.continuous:
        moves = np.stack([units(both.sim, smax_random.MOVES_OR_SHOOTS, agent=a) for a in range(len(both.agents))], 1)
        again = np.stack([units(both.sim, smax_random.SHOOTS_AGAIN, agent=a) for a in range(len(both.agents))], 1)
        near = np.minimum(near, least(np.abs(moves - actions[..., 1]), True))
        near = np.minimum(near, least(np.abs(again - actions[..., 0]), True))
    kept, _ = both.step(values, actions, near)
    now = both.sim.state()
    kept &= both.margin(now) > CLOSE
    both.assert_same_views(both.theirs(now), kept)
    hurt = (now["health"] < values["health"]).any(1)
    assert hurt[kept].sum() > n / 20
    assert kept.mean() > 0.4, kept.mean()  # of 57 units in a crowd two often almost coincide


@pytest.mark.rotates
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_steps_of_scenarios(scenario):
    compare_steps(scenario=scenario)


@pytest.mark.rotates
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_steps_with_options(options):
    compare_steps(**options)


@pytest.mark.rotates
@pytest.mark.parametrize("policy", ["heuristic", "agents"])
def test_steps_with_continuous_actions(policy):
    compare_steps(SMAXContinuous, scenario="3s5z", enemy_policy=policy)


def compare_episodes(n, game=SMAX, **options):
    """Random episodes from their start; JaxMARL takes over our states before each step, as single roundings add up."""
    both, rng = Both(n, game, **options), np.random.default_rng(2)
    over, compared, steps = np.zeros(n, bool), 0, 0
    while not over.all():
        values = both.sim.state()
        near = np.where(over, -1.0, both.margin(values))
        kept, _ = both.step(values, chosen(both, rng), near)
        compared, steps = compared + int(kept.sum()), steps + int((~over).sum())
        over |= (both.sim.arrays["terminated"] | both.sim.arrays["truncated"]).all(1)
        if both.sim.state()["elapsed_steps"].max() % 10 == 0:
            now = both.sim.state()
            both.assert_same_views(both.theirs(now), ~over & (both.margin(now) > CLOSE))
    assert compared > 0.9 * steps, compared / steps
    assert steps > 10 * n


@pytest.mark.rotates
@pytest.mark.parametrize("options", [{"scenario": "3m"}, {"scenario": "smacv2_5_units"}], ids=str)
def test_episodes(options):
    compare_episodes(30, **options)


@pytest.mark.rotates(long=True)
@pytest.mark.parametrize("scenario", ["3m", "2s3z", "smacv2_5_units"])
def test_many_episodes(scenario):
    compare_episodes(1000, scenario=scenario)


@pytest.mark.rotates
@pytest.mark.parametrize("scenario", ["2s3z", "smacv2_5_units", "smacv2_3_vs_5_units", "smacv2_5_vs_3_units"])
def test_starts(scenario):
    """The start of each env from the same random numbers, roundings aside."""
    n = 40
    both = Both(n, scenario=scenario)
    sim, allies, enemies, ours = both.sim, both.allies, both.enemies, both.sim.state()
    both.inner.get_obs, both.inner.get_world_state = lambda state: {}, lambda state: 0.0

    def of_units(draw, kind=units, *args):
        return np.stack([kind(sim, draw, *args, agent=u, ahead=0) for u in range(both.units)], 1)

    place = np.stack([of_units(0), of_units(1)], -1).astype(np.float32)
    kinds, corners = of_units(2, integers, 6), of_units(3, integers, 4)
    surrounded, ally_inside = (integers(sim, draw, 2, ahead=0) for draw in (0, 1))
    t = np.stack([units(sim, 2 + k, ahead=0) for k in range(4)], 1).astype(np.float32)[..., None]
    assert 0 < surrounded.sum() < n
    for k in range(n):
        ally, enemy, more = place[k, :allies], place[k, allies:], max(enemies - allies, 0)
        given = [ally, enemy, np.float32(0.25 if surrounded[k] else 0.75)]
        given += [ally, corners[k, allies:], t[k], enemy, enemy, corners[k, :allies], t[k], ally, ally_inside[k]]
        extra = [enemy[enemies - more :]] if enemies >= allies else []
        given += [ally, *extra, kinds[k, :allies], *([kinds[k, :more]] if extra else [])]
        key = smax_random.Given(*given)
        with jax.disable_jit():
            _, state = both.inner.reset(key)
        assert not key.values
        want = {name: x[0] for name, x in both.fields_of(jax.tree.map(lambda x: x[None], state)).items()}
        for name in ("health", "type", "attack", "cooldown", "elapsed_steps"):
            np.testing.assert_array_equal(ours[name][k], want[name], err_msg=name)
        for name in ("x", "y", "move_x", "move_y"):
            np.testing.assert_allclose(ours[name][k], want[name], rtol=NEAR, atol=NEAR, err_msg=name)


@pytest.mark.rotates
@pytest.mark.parametrize("scenario", ["3m", "smacv2_5_units"])
def test_whole_battles_end_alike(scenario):
    """Episodes that nothing ties together: mean returns, lengths and victories of 2,000 each, within 5 standard errors.

    Allies attack the first opponent in range, or else go east.
    """
    n = 2000
    both = Both(n, scenario=scenario)
    env, sim, limit = both.env, both.sim, 101

    def step(carry, key):
        state, over, result = carry
        masks = env.get_avail_actions(state)
        acts = {a: jnp.where(m[5:].any(), 5 + jnp.argmax(m[5:]), jnp.where(m[1], 1, 4)) for a, m in masks.items()}
        _, state, rewards, done, _ = env.step_env(key, state, acts)
        alive = state.state.unit_alive
        won = alive[: both.allies].any() & ~alive[both.allies :].any()
        now = jnp.array([rewards["ally_0"], 1.0, won])
        return (state, over | done["__all__"], result + jnp.where(over, 0.0, now)), None

    def episode(key):
        first, rest = jax.random.split(key)
        _, state = env.reset(first)
        begin = (state, jnp.array(False), jnp.zeros(3))
        return jax.lax.scan(step, begin, jax.random.split(rest, limit))[0][1:]

    over, theirs = jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(7), n))
    assert np.asarray(over).all()
    ours, done = np.zeros((n, 3)), np.zeros(n, bool)
    for _ in range(limit):
        mask = sim.arrays["action_mask"] > 0
        acts = np.where(mask[..., 5:].any(-1), 5 + mask[..., 5:].argmax(-1), np.where(mask[..., 1], 1, 4))
        sim.arrays["action"][...] = acts.reshape(sim.arrays["action"].shape)
        sim.step()
        now = np.stack([sim.arrays["reward"][:, 0], np.ones(n), sim.arrays["winner"].reshape(n) == 1], 1)
        ours += np.where(done[:, None], 0.0, now)
        done |= (sim.arrays["terminated"] | sim.arrays["truncated"])[:, 0]
    assert done.all()
    theirs = np.asarray(theirs)
    error = np.sqrt((ours.var(0) + theirs.var(0)) / n)
    assert (abs(ours.mean(0) - theirs.mean(0)) < 5 * error).all()


def test_dead_units_leave():
    """With the option a unit terminates as JaxMARL says that it is done; until then rewards are the same."""
    n, rng = 2000, np.random.default_rng(0)
    both = Both(n, scenario="2s3z", enemy_policy="agents")
    options = {"scenario": "2s3z", "enemy_policy": "agents"}
    leaving = Simulator(SMAX, n, autoreset_mode="disabled", device="cpu", dead_units_leave=True, **options)
    leaving.reset(seed=0)
    values = drawn(both, rng) | {"elapsed_steps": np.zeros(n, np.int32)}
    values["health"] = np.maximum(values["health"], 1)
    both.sim.set_state(values)
    leaving.set_state(values)
    actions = chosen(both, rng)
    for sim in (both.sim, leaving):
        sim.arrays["action"][...] = actions.reshape(sim.arrays["action"].shape)
    state, key = both.theirs(values), both.key()
    named = {agent: jnp.array(actions[:, a]) for a, agent in enumerate(both.agents)}
    done = both.advance(key, state, named)[3]
    both.sim.step()
    leaving.step()
    dead = np.stack([np.asarray(done[agent]) for agent in both.agents], 1)
    clear = both.margin(values) > CLOSE
    ended = both.sim.arrays["terminated"].all(1)
    ours = leaving.arrays["terminated"]
    same = (ours == dead).all(1) | ended
    assert same[clear].mean() > 0.999  # thresholds within the step aside
    np.testing.assert_array_equal(leaving.arrays["reward"], both.sim.arrays["reward"])
    assert dead.sum() > n / 10
