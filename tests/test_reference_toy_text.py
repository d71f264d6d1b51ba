"""FrozenLake, Taxi, CliffWalking and Blackjack against Gymnasium's, exactly, with Gymnasium's random draws being ours.

From every state with every action; then whole episodes. Where Gymnasium chooses with probabilities, it gets the number
in [0, 1) that we drew. Both add up the probabilities, ours in float32, theirs in float64, so that a number within
float32's error of a sum may be decided otherwise; such numbers (none, or one in a million) are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from draws import integers, units
from gymnasium.envs.toy_text.blackjack import BlackjackEnv, deck
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv, generate_random_map
from gymnasium.envs.toy_text.taxi import TaxiEnv

from gpuzoo.core.definition import EnvDef
from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.toy_text.blackjack import Blackjack
from gpuzoo.envs.toy_text.cliff_walking import CliffWalking
from gpuzoo.envs.toy_text.frozen_lake import FrozenLake
from gpuzoo.envs.toy_text.taxi import Taxi

pytestmark = pytest.mark.rotates

RANDOM_MAP = generate_random_map(size=7, seed=3)
TALL_MAP = ["SFHF", "FFFS", "GFFF", "HFFH", "FSFF", "FFHG"]
REWARDS = {"reward_goal": 5.0, "reward_hole": -2.0, "reward_frozen": -0.25}

#: ours, its configuration, theirs, its arguments
Case = tuple[type[EnvDef], dict[str, Any], Callable[..., Any], dict[str, Any]]
GRIDS: dict[str, Case] = {
    "4x4": (FrozenLake, {}, FrozenLakeEnv, {}),
    "8x8": (FrozenLake, {"map_name": "8x8"}, FrozenLakeEnv, {"map_name": "8x8"}),
    "firm": (FrozenLake, {"is_slippery": False}, FrozenLakeEnv, {"is_slippery": False}),
    "random map": (
        FrozenLake, {"desc": "/".join(RANDOM_MAP), "success_rate": 0.7}, FrozenLakeEnv,
        {"desc": RANDOM_MAP, "success_rate": 0.7},
    ),
    "several starts and goals": (
        FrozenLake, {"desc": "/".join(TALL_MAP), **REWARDS}, FrozenLakeEnv,
        {"desc": TALL_MAP, "reward_schedule": (5.0, -2.0, -0.25)},
    ),
    "cliff": (CliffWalking, {}, CliffWalkingEnv, {}),
    "slippery cliff": (CliffWalking, {"is_slippery": True}, CliffWalkingEnv, {"is_slippery": True}),
    "taxi": (Taxi, {}, TaxiEnv, {}),
    "rainy taxi": (Taxi, {"is_rainy": True}, TaxiEnv, {"is_rainy": True}),
    "very rainy taxi": (
        Taxi, {"is_rainy": True, "rainy_probability": 0.3}, TaxiEnv, {"is_rainy": True, "rainy_probability": 0.3}
    ),
    "fickle passenger": (
        Taxi, {"fickle_passenger": True, "fickle_probability": 0.6}, TaxiEnv,
        {"fickle_passenger": True, "fickle_probability": 0.6},
    ),
    "fickle passenger in the rain": (
        Taxi, {"is_rainy": True, "fickle_passenger": True}, TaxiEnv, {"is_rainy": True, "fickle_passenger": True}
    ),
}  # fmt: skip


class Fed:
    """Stands for Gymnasium's np_random: gives the numbers that it was given."""

    def __init__(self, numbers: Sequence[float] = (), chosen: Sequence[Any] = ()) -> None:
        self.numbers, self.chosen = list(numbers), list(chosen)

    def random(self) -> float:
        return self.numbers.pop(0)

    def choice(self, options: Sequence[Any]) -> Any:
        value = self.chosen.pop(0)
        if isinstance(value, tuple):  # what its place is among the options
            value = options[value[0]]
        assert value in options
        return value


def numbers(case: Case, sim: Simulator) -> np.ndarray:
    """What Gymnasium draws in the next step to choose a transition."""
    if case[0] is CliffWalking:
        return (integers(sim, 0, 3) + 0.5) / 3
    return units(sim, 0)


def doubtful(case: Case, number: np.ndarray) -> np.ndarray:
    """Numbers so close to a sum of probabilities that float32 may decide otherwise."""
    cfg: Any = case[0].Config(**case[1])
    if case[0] is CliffWalking:
        return np.zeros(len(number), bool)
    first = cfg.rainy_probability if case[0] is Taxi else (1 - cfg.success_rate) / 2
    second = (1 + first) / 2 if case[0] is Taxi else first + cfg.success_rate
    return np.minimum(abs(number - first), abs(number - second)) < 2.0**-22


def put(case: Case, sim: Simulator, states: np.ndarray) -> None:
    """Sets the envs' states, given as Gymnasium numbers them."""
    if case[0] is Taxi:
        places, rest = np.divmod(states, 20)
        sim.set_state({
            "row": places // 5, "column": places % 5, "passenger": rest // 4, "destination": rest % 4,
            "fickle_step": np.full(len(states), bool(case[1].get("fickle_passenger"))),
        })  # fmt: skip
    else:
        columns = case[2](**case[3]).desc.shape[1] if case[0] is FrozenLake else 12
        sim.set_state({"row": states // columns, "column": states % columns})


@pytest.mark.parametrize("name", GRIDS)
def test_every_transition(name: str) -> None:
    """Each state, each action, 20 draws: what Gymnasium's table P says, chosen as Gymnasium chooses; and all that the
    table says does occur."""
    case = GRIDS[name]
    env = case[2](**case[3])
    count, actions = int(env.observation_space.n), int(env.action_space.n)
    repeats = 20 if any(len(row) > 1 for state in env.P.values() for row in state.values()) else 1
    states, chosen, _ = (grid.ravel() for grid in np.mgrid[:count, :actions, :repeats])
    sim = Simulator(case[0], len(states), device="cpu", autoreset_mode="disabled", max_episode_steps=None, **case[1])
    sim.reset(seed=0)
    put(case, sim, states)
    sim.arrays["action"][:, 0, 0] = chosen
    number = numbers(case, sim)
    clear = ~doubtful(case, number) if repeats > 1 else np.ones(len(states), bool)
    sim.step()
    ours = sim.arrays["observation"][:, 0, 0].copy()
    seen: dict[tuple[int, int], set[tuple[int, float, bool]]] = {}
    for k in np.flatnonzero(clear).tolist():
        env.s, env.lastaction = int(states[k]), None
        env.fickle_step = bool(case[1].get("fickle_passenger"))
        env._np_random = Fed([number[k]], [int(ours[k]) % 4] if case[0] is Taxi else [])
        observation, reward, terminated, _, _ = env.step(int(chosen[k]))
        where = (name, int(states[k]), int(chosen[k]))
        assert observation == ours[k], where
        assert reward == sim.arrays["reward"][k, 0], where
        assert terminated == bool(sim.arrays["terminated"][k, 0]), where
        if case[0] is Taxi:
            assert env.fickle_step == bool(sim.arrays["fickle_step"][k])
        seen.setdefault((int(states[k]), int(chosen[k])), set()).add((int(ours[k]), float(reward), terminated))
    assert clear.mean() > 0.999
    if not case[1].get("fickle_passenger"):
        kinds = [len({(s, r, t) for _, s, r, t in env.P[s0][a]}) for s0, a in seen]
        found = [len(outcomes) for outcomes in seen.values()]
        assert (np.array(found) <= kinds).all()
        assert np.mean(np.array(found) == kinds) > 0.8


@pytest.mark.parametrize("name", GRIDS)
def test_whole_episodes(name: str) -> None:
    """1,000 episodes, each beside a Gymnasium env that starts where ours does; episodes without a time limit and those
    of the taxi, 200 steps long for random play, are 100."""
    case = GRIDS[name]
    count = 1_000 if case[0] is FrozenLake else 100
    steps = case[0].max_episode_steps or 200
    sim = Simulator(case[0], count, device="cpu", autoreset_mode="disabled", max_episode_steps=steps, **case[1])
    sim.reset(seed=5)
    env = case[2](**case[3])
    states = sim.arrays["observation"][:, 0, 0].astype(int)
    assert (env.initial_state_distrib[states] > 0).all()
    fickle = sim.arrays["fickle_step"].astype(bool) if case[0] is Taxi else np.zeros(count, bool)
    if case[0] is Taxi and case[1].get("fickle_passenger"):
        np.testing.assert_array_equal(fickle, units(sim, 4, ahead=0) < np.float32(env.fickle_probability))
        assert fickle.any()
    running, ended, certain = np.ones(count, bool), 0, np.ones(count, bool)
    for step in range(1, steps + 1):
        sim.random_actions()
        actions, number = sim.arrays["action"][:, 0, 0].copy(), numbers(case, sim)
        certain &= ~doubtful(case, number)
        running &= certain
        sim.step()
        for k in np.flatnonzero(running).tolist():
            env.s, env.fickle_step = int(states[k]), bool(fickle[k])
            observed = int(sim.arrays["observation"][k, 0, 0])
            env._np_random = Fed([number[k]], [observed % 4])
            observation, reward, terminated, _, _ = env.step(int(actions[k]))
            assert (observation, np.float32(reward)) == (observed, sim.arrays["reward"][k, 0])
            assert terminated == bool(sim.arrays["terminated"][k, 0])
            assert bool(sim.arrays["truncated"][k, 0]) == (step == steps)
            states[k], fickle[k] = observation, env.fickle_step
            if terminated:
                running[k] = False
                ended += 1
    assert certain.mean() > 0.99
    assert ended > (0.9 * count if case[0] is FrozenLake and not case[1].get("desc") else 0)


@pytest.mark.parametrize("name", ["4x4", "several starts and goals", "cliff", "taxi"])
def test_starts(name: str) -> None:
    """Each start of Gymnasium's distribution about as often as it says: within five standard deviations."""
    case, count = GRIDS[name], 30_000
    sim = Simulator(case[0], count, device="cpu", **case[1])
    sim.reset(seed=0)
    wanted = case[2](**case[3]).initial_state_distrib
    found = np.bincount(sim.arrays["observation"][:, 0, 0].astype(int), minlength=len(wanted)) / count
    assert (abs(found - wanted) <= 5 * np.sqrt(wanted * (1 - wanted) / count)).all()


@pytest.mark.parametrize("desc", ["SF/F", "", "SX", "FG", "SG//FF"])
def test_faulty_maps(desc: str) -> None:
    if desc == "":
        assert Simulator(FrozenLake, 1, device="cpu", desc=desc).program.layout.observation_spaces["agent"].n == 16
        return
    with pytest.raises(ValueError, match="FrozenLake-v1: desc"):
        Simulator(FrozenLake, 1, device="cpu", desc=desc)


# ---- Blackjack ----

RULES = [{"sab": True}, {"sab": False}, {"sab": False, "natural": True}, {"sab": True, "natural": True}]


def cards(sim: Simulator, draw: int, ahead: int = 1) -> np.ndarray:
    return np.array(deck)[integers(sim, draw, 13, ahead=ahead)]


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_blackjack(rules: dict[str, bool]) -> None:
    """5,000 episodes from reset on. Gymnasium draws the cards that we drew, the dealer's too."""
    count = 5_000
    sim = Simulator(Blackjack, count, device="cpu", autoreset_mode="disabled", max_episode_steps=None, **rules)
    sim.reset(seed=2)
    dealt = [cards(sim, k, ahead=0) for k in range(4)]
    envs = []
    for k in range(count):
        env = BlackjackEnv(**rules)
        env._np_random = Fed(chosen=[int(hand[k]) for hand in dealt] + [(0,)] * 2)
        observation, _ = env.reset()
        assert tuple(sim.arrays["observation"][k, 0]) == observation
        envs.append(env)
    rng = np.random.default_rng(0)
    running, rewards = np.ones(count, bool), set()
    while running.any():
        actions = rng.integers(0, 2, count)
        sim.arrays["action"][:, 0, 0] = actions
        drawn = np.stack([cards(sim, k) for k in range(10)], 1)
        sim.step()
        for k in np.flatnonzero(running).tolist():
            envs[k]._np_random = Fed(chosen=drawn[k].tolist())
            observation, reward, terminated, _, _ = envs[k].step(int(actions[k]))
            assert tuple(sim.arrays["observation"][k, 0]) == observation
            assert (reward, terminated) == (sim.arrays["reward"][k, 0], bool(sim.arrays["terminated"][k, 0]))
            rewards.add(reward)
            running[k] = not terminated
    assert rewards == {-1.0, 0.0, 1.0} | ({1.5} if rules == {"sab": False, "natural": True} else set())


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_blackjack_from_every_state(rules: dict[str, bool]) -> None:
    """Every hand that a player can hold against every pair of the dealer's, both actions."""
    hands = [[1, k] for k in range(1, 11)] + [[2, k] for k in range(2, 11)] + [[10, k] for k in range(3, 11)]
    hands += [[1, 1, k] for k in (1, 8, 9, 10)] + [
        [1, 10, 10],
        [10, 1, 5],
        [5, 5, 1],
        [2, 3, 6],
        [10, 9, 2],
        [10, 6, 4],
    ]
    pairs = [(a, b) for a in range(1, 11) for b in range(1, 11)]
    table = [(hand, pair, action) for hand in hands for pair in pairs for action in (0, 1)]
    sim = Simulator(Blackjack, len(table), device="cpu", autoreset_mode="disabled", max_episode_steps=None, **rules)
    sim.reset(seed=4)
    sim.set_state({
        "player_sum": np.array([sum(hand) for hand, _, _ in table]),
        "player_ace": np.array([1 in hand for hand, _, _ in table]),
        "player_cards": np.array([len(hand) for hand, _, _ in table]),
        "dealer_showing": np.array([pair[0] for _, pair, _ in table]),
        "dealer_hidden": np.array([pair[1] for _, pair, _ in table]),
    })  # fmt: skip
    sim.arrays["action"][:, 0, 0] = [action for _, _, action in table]
    drawn = np.stack([cards(sim, k) for k in range(10)], 1)
    sim.step()
    env, longest = BlackjackEnv(**rules), 0
    for k, (hand, pair, action) in enumerate(table):
        env.player, env.dealer = list(hand), list(pair)
        env._np_random = Fed(chosen=drawn[k].tolist())
        observation, reward, terminated, _, _ = env.step(action)
        longest = max(longest, len(env.dealer))
        assert tuple(sim.arrays["observation"][k, 0]) == observation
        assert (reward, terminated) == (sim.arrays["reward"][k, 0], bool(sim.arrays["terminated"][k, 0]))
    assert longest >= 5


def test_ten_draws_are_enough() -> None:
    """The longest hand of a dealer has twelve cards."""
    longest, open_hands = 0, {(min(c, 10), c == 1, 1) for c in range(1, 11)}
    while open_hands:
        grown = set()
        for total, ace, size in open_hands:
            for card in range(1, 11):
                hand = (total + card, ace or card == 1, size + 1)
                longest = max(longest, hand[2])
                if hand[0] + 10 * (hand[1] and hand[0] <= 11) < 17:
                    grown.add(hand)
        open_hands = grown
    assert longest == 12
