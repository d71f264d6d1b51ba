"""PettingZoo's wrappers and conversions, and SuperSuit's, around our envs."""

from __future__ import annotations

import copy
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo.utils import conversions, wrappers
from toys.glide import Glide
from toys.herd import Herd

from gpuzoo import aec_env, parallel_env
from gpuzoo.testing.tools import assert_same, leaves_of

pytestmark = pytest.mark.one_of_a_kind

LIMIT = 8


def leaves(value: Any) -> dict[str, np.ndarray]:
    return leaves_of({"value": value})


def same(where: str, one: Any, other: Any) -> None:
    assert_same(where, leaves(one), leaves(other))


def legal(env: Any, agent: str, observation: Any) -> Any:
    mask = observation["action_mask"] if isinstance(observation, dict) else None
    space = env.action_space(agent)
    if mask is None or not isinstance(space, spaces.Discrete):
        return space.sample()
    return space.sample(mask)


def actions_for(env: Any, step: int) -> dict[str, Any]:
    for k, agent in enumerate(env.agents):
        env.action_space(agent).seed(1000 * step + k)
    return {agent: env.action_space(agent).sample() for agent in env.agents}


def play_parallel(env: Any, episodes: int = 2) -> list[Any]:
    """All that an env returns, with actions that depend on nothing but the step and who is in the game."""
    story = []
    for episode in range(episodes):
        story.append(copy.deepcopy(env.reset(seed=episode)))
        step = 0
        while env.agents:
            names, actions = list(env.agents), actions_for(env, step)
            story.append((names, copy.deepcopy(env.step(actions))))
            step += 1
    return story


def play_aec(env: Any, episodes: int = 2) -> list[Any]:
    story = []
    for episode in range(episodes):
        env.reset(seed=episode)
        env.action_space(env.agents[0]).seed(episode)
        for k, agent in enumerate(env.possible_agents):
            env.action_space(agent).seed(10 * episode + k)
        for agent in env.agent_iter():
            observation, reward, terminated, truncated, info = env.last()
            story.append(copy.deepcopy((agent, observation, float(reward), terminated, truncated, info)))
            env.step(None if terminated or truncated else legal(env, agent, observation))
    return story


def compare(one: list[Any], other: list[Any]) -> None:
    assert len(one) == len(other)
    for k, (a, b) in enumerate(zip(one, other, strict=True)):
        same(f"entry {k}", a, b)


# ---- conversions ----


def test_parallel_to_aec_and_back(parallel_game):
    there = conversions.parallel_to_aec(parallel_env(parallel_game, max_cycles=LIMIT))
    assert conversions.aec_to_parallel(there) is there.env.env
    back = conversions.aec_to_parallel_wrapper(conversions.parallel_to_aec_wrapper(there.env.env))  # the long way
    plain = play_parallel(parallel_env(parallel_game, max_cycles=LIMIT))
    for entry, converted in zip(plain, play_parallel(back), strict=True):
        if isinstance(entry[0], dict):
            same("reset", entry, converted)
            continue
        assert entry[0] == converted[0]
        for name, mine, theirs in zip(
            ("observations", "rewards", "terminations", "truncations", "infos"), entry[1], converted[1], strict=True
        ):
            assert mine.keys() == theirs.keys(), name
            same(name, mine, {k: theirs[k] for k in mine})


def test_aec_rewards_are_those_of_the_parallel_env(parallel_game):
    env, other = parallel_env(parallel_game, max_cycles=LIMIT), aec_env(parallel_game, max_cycles=LIMIT)
    env.reset(seed=3)
    other.reset(seed=3)
    totals, others = dict.fromkeys(env.agents, 0.0), dict.fromkeys(env.agents, 0.0)
    while env.agents:
        for agent, reward in env.step({a: first(env, a) for a in env.agents})[1].items():
            totals[agent] += reward
    for agent in other.agent_iter():
        _, reward, terminated, truncated, _ = other.last()
        others[agent] += reward
        other.step(None if terminated or truncated else first(other, agent))
    assert totals == others


def first(env: Any, agent: str) -> Any:
    env.action_space(agent).seed(7)
    return env.action_space(agent).sample()


def test_turn_based_to_parallel(turn_game):
    converted, env = conversions.turn_based_aec_to_parallel(aec_env(turn_game)), aec_env(turn_game)
    observations, _ = converted.reset(seed=4)
    env.reset(seed=4)
    steps = 0
    while converted.agents:
        mover = env.agent_selection
        assert converted.aec_env.agent_selection == mover
        for agent in converted.agents:
            same(agent, env.observe(agent), observations[agent])
        action = legal(env, mover, observations[mover])
        env.step(action)
        observations, rewards, terminations, truncations, infos = converted.step({mover: action})
        assert rewards == env.rewards
        assert (terminations, truncations) == (env.terminations, env.truncations)
        assert infos.keys() == env.infos.keys()
        while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
            env.step(None)
        steps += 1
    assert steps >= 1  # whoever folds ends a game of poker
    assert not env.agents


def test_turn_based_games_are_not_parallelizable(turn_game):
    with pytest.raises(AssertionError, match="is not generally safe"):
        conversions.aec_to_parallel(aec_env(turn_game))


# ---- wrappers ----


def fake_moviepy(monkeypatch: pytest.MonkeyPatch) -> list[list[np.ndarray]]:
    videos: list[list[np.ndarray]] = []

    class ImageSequenceClip:
        def __init__(self, frames: list[np.ndarray], fps: int) -> None:
            videos.append(list(frames))

        def write_videofile(self, path: str, logger: Any) -> None:
            pass

    for module in ("moviepy", "moviepy.video", "moviepy.video.io", "moviepy.video.io.ImageSequenceClip"):
        monkeypatch.setitem(sys.modules, module, types.ModuleType(module))
    sys.modules["moviepy.video.io.ImageSequenceClip"].ImageSequenceClip = ImageSequenceClip  # type: ignore[attr-defined]
    return videos


#: wrappers that change nothing as long as all goes well, around AEC and parallel envs
AEC: dict[str, Callable[[Any], Any]] = {
    "BaseWrapper": wrappers.BaseWrapper,
    "OrderEnforcingWrapper": wrappers.OrderEnforcingWrapper,
    "AssertOutOfBoundsWrapper": wrappers.AssertOutOfBoundsWrapper,
}
PARALLEL: dict[str, Callable[[Any], Any]] = {"BaseParallelWrapper": wrappers.BaseParallelWrapper}
#: those with a test of their own
OTHERS = {
    "CaptureStdoutWrapper",
    "ClipOutOfBoundsWrapper",
    "MultiEpisodeEnv",
    "MultiEpisodeParallelEnv",
    "RecordVideo",
    "RecordVideoParallel",
    "TerminateIllegalWrapper",
}


def test_each_wrapper_has_a_test():
    assert {*AEC, *PARALLEL, *OTHERS} == set(wrappers.__all__)


@pytest.mark.parametrize("name", AEC)
def test_aec_wrapper_changes_nothing(multi_game, name):
    compare(play_aec(AEC[name](aec_env(multi_game, max_cycles=LIMIT))), play_aec(aec_env(multi_game, max_cycles=LIMIT)))


@pytest.mark.parametrize("name", PARALLEL)
def test_parallel_wrapper_changes_nothing(parallel_game, name):
    env = parallel_env(parallel_game, max_cycles=LIMIT)
    wrapped = PARALLEL[name](parallel_env(parallel_game, max_cycles=LIMIT))
    assert wrapped.unwrapped.simulator.env.id == parallel_game.id
    compare(play_parallel(wrapped), play_parallel(env))


def test_order_is_enforced(multi_game):
    env = aec_env(multi_game)
    with pytest.raises(AttributeError, match="agents cannot be accessed before reset"):
        _ = env.agents
    with pytest.raises(AssertionError, match="reset\\(\\) needs to be called before step"):
        env.step(0)


def test_actions_out_of_bounds(multi_game):
    env = wrappers.AssertOutOfBoundsWrapper(aec_env(multi_game))
    env.reset(seed=0)
    space = env.action_space(env.agent_selection)
    with pytest.raises(AssertionError, match="action is not in action space"):
        env.step(space.high + 1 if isinstance(space, spaces.Box) else 10_000)
    if not isinstance(space, spaces.Box):
        with pytest.raises(AssertionError, match="should only use ClipOutOfBoundsWrapper for Box spaces"):
            wrappers.ClipOutOfBoundsWrapper(aec_env(multi_game))


def test_actions_are_clipped():
    env, plain = wrappers.ClipOutOfBoundsWrapper(aec_env(Glide)), aec_env(Glide)
    for e in (env, plain):
        e.reset(seed=0)
    env.step(np.array([5, -7], np.float32))
    plain.step(np.array([1, -0.5], np.float32))
    same("clipped", env.last(), plain.last())


def test_an_illegal_move_ends_the_game(turn_game):
    env = wrappers.TerminateIllegalWrapper(aec_env(turn_game), illegal_reward=-3)
    env.reset(seed=0)
    for _ in range(50):
        mask = env.observe(env.agent_selection)["action_mask"]
        if not mask.all():
            break
        env.step(0)
        if all(env.terminations.values()):
            return  # every action is legal
    mover = env.agent_selection
    env.step(int(np.flatnonzero(mask == 0)[0]))
    assert env.rewards == {agent: -3.0 if agent == mover else 0 for agent in env.possible_agents}
    assert all(env.terminations.values())
    for _ in env.possible_agents:
        env.step(None)
    assert env.agents == []
    env.reset(seed=0)
    assert env.agents == env.possible_agents


def test_several_episodes_in_one(parallel_game):
    env = wrappers.MultiEpisodeParallelEnv(parallel_env(parallel_game, max_cycles=3), num_episodes=3)
    plain = parallel_env(parallel_game, max_cycles=3)
    observations, _ = env.reset(seed=5)
    same("reset", plain.reset(seed=5)[0], observations)
    episodes, step = 1, 0
    while env.agents:
        actions = actions_for(env, step)
        expected = plain.step({a: actions[a] for a in plain.agents})
        observations, rewards, terminations, truncations, _ = env.step(actions)
        assert rewards == expected[1]
        assert not any(terminations.values())
        step += 1
        if not plain.agents and episodes < 3:
            assert not any(truncations.values())
            expected = plain.reset(seed=5 + episodes)
            episodes += 1
        same("observations", expected[0], observations)
    assert all(truncations.values())
    assert episodes == 3


def test_several_aec_episodes_in_one(turn_game):
    plain = play_aec(aec_env(turn_game), episodes=1)
    env = wrappers.MultiEpisodeEnv(aec_env(turn_game), num_episodes=2)
    env.reset(seed=0)
    for agent in env.possible_agents:
        env.action_space(agent).seed(env.possible_agents.index(agent))
    story, begun = [], 0
    while env.agents and len(story) < len(plain):
        agent = env.agent_selection
        observation, reward, terminated, truncated, info = env.last()
        story.append(copy.deepcopy((agent, observation, float(reward), terminated, truncated, info)))
        env.step(None if terminated or truncated else legal(env, agent, observation))
        begun += not any((*env.terminations.values(), *env.truncations.values()))
    compare(story, plain)
    assert env.agents == env.possible_agents, "the second episode has begun"


def test_captured_output(multi_game):
    env = wrappers.CaptureStdoutWrapper(aec_env(multi_game, render_mode="human"))
    pytest.importorskip("pygame")
    env.reset(seed=0)
    assert env.render() == "", "the window shows it, nothing is printed"
    env.close()
    with pytest.raises(AssertionError, match="works only with human rendering mode"):
        wrappers.CaptureStdoutWrapper(aec_env(multi_game, render_mode="rgb_array"))


@pytest.mark.one_case
@pytest.mark.parametrize("name", ["RecordVideo", "RecordVideoParallel"])
def test_videos(name, monkeypatch, tmp_path):
    videos = fake_moviepy(monkeypatch)
    make = parallel_env if name == "RecordVideoParallel" else aec_env
    env = getattr(wrappers, name)(make(Herd, max_cycles=3, render_mode="rgb_array"), str(tmp_path / "videos"))
    (play_parallel if make is parallel_env else play_aec)(env, 2)
    env.close()
    assert len(videos) == 2, "the first and the second episode"
    plain = make(Herd, max_cycles=3, render_mode="rgb_array")
    plain.reset(seed=0)
    assert np.array_equal(videos[0][0], plain.render())
    assert len(videos[0]) >= 4


# ---- copies ----


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_copies_go_on_alike(multi_game, copied):
    """Many tools copy an env to have more of them."""
    make = aec_env if multi_game.turn else parallel_env
    env = make(multi_game, max_cycles=LIMIT)
    assert copied(env).possible_agents == env.possible_agents, "one that was never reset"
    env.reset(seed=2)
    if multi_game.turn:
        env.step(legal(env, env.agent_selection, env.last()[0]))
        twin = copied(env)
        for agent in env.agent_iter():
            same(agent, env.last(), twin.last())
            _, _, terminated, truncated, _ = env.last()
            action = None if terminated or truncated else legal(env, agent, env.last()[0])
            env.step(action)
            twin.step(action)
    else:
        env.step(actions_for(env, 0))
        twin = copied(env)
        while env.agents:
            actions = actions_for(env, 1)
            same("step", env.step(actions), twin.step(actions))
    assert twin.agents == env.agents == []


# ---- SuperSuit ----


@pytest.fixture
def supersuit():
    return pytest.importorskip("supersuit")


def plain_boxes(env: Any) -> bool:
    return all(isinstance(env.observation_space(a), spaces.Box) for a in env.possible_agents)


def paddable(env: Any) -> bool:
    return all(isinstance(env.action_space(a), spaces.Discrete | spaces.Box) for a in env.possible_agents)


def suited(supersuit: Any, game: Any, limit: int = LIMIT) -> Any:
    """What people put around an env before they make a vector env of it."""
    env = supersuit.pad_observations_v0(parallel_env(game, max_cycles=limit))
    return supersuit.black_death_v3(supersuit.pad_action_space_v0(env) if paddable(env) else env)


def test_supersuits_padding(parallel_game, supersuit):
    env, plain = parallel_env(parallel_game, max_cycles=LIMIT), parallel_env(parallel_game, max_cycles=LIMIT)
    if not plain_boxes(env):
        with pytest.raises(AssertionError, match="homogenization only supports"):
            supersuit.pad_observations_v0(env)
        return
    env = supersuit.pad_observations_v0(env)
    assert len({env.observation_space(a).shape for a in env.possible_agents}) == 1
    if paddable(env):
        env = supersuit.pad_action_space_v0(env)
        assert len({str(env.action_space(a)) for a in env.possible_agents}) == 1
    else:
        with pytest.raises(AssertionError, match="homogenization only supports Discrete and Box"):
            supersuit.pad_action_space_v0(env)
    observations, expected = env.reset(seed=1)[0], plain.reset(seed=1)[0]
    for step in range(LIMIT):
        for agent, values in expected.items():
            padded = observations[agent]
            np.testing.assert_array_equal(padded[tuple(map(slice, np.shape(values)))], values)
            assert np.count_nonzero(padded) == np.count_nonzero(values)
        actions = actions_for(plain, step)
        observations, expected = env.step(actions)[0], plain.step(actions)[0]
    assert env.agents == plain.agents == []


def test_supersuits_frame_stack(parallel_game, supersuit):
    plain = parallel_env(parallel_game, max_cycles=LIMIT)
    if not plain_boxes(plain):
        with pytest.raises(AssertionError):
            supersuit.frame_stack_v1(plain, 3)
        return
    env = supersuit.frame_stack_v1(parallel_env(parallel_game, max_cycles=LIMIT), 3)
    observations, expected = env.reset(seed=1)[0], plain.reset(seed=1)[0]
    for step in range(LIMIT):
        for agent, values in expected.items():
            # rows of numbers are stacked along a new axis
            newest = (..., -1) if values.ndim == 2 else (..., slice(-values.shape[-1], None))
            np.testing.assert_array_equal(observations[agent][newest], values)
        actions = actions_for(plain, step)
        observations, expected = env.step(actions)[0], plain.step(actions)[0]


def test_supersuits_black_death(parallel_game, supersuit):
    plain = parallel_env(parallel_game, max_cycles=30)
    if not plain_boxes(plain):
        with pytest.raises(AssertionError, match="must be"):
            supersuit.black_death_v3(plain).reset()
        return
    env = supersuit.black_death_v3(parallel_env(parallel_game, max_cycles=30))
    everybody, _ = env.possible_agents, [e.reset(seed=1) for e in (env, plain)]
    step = 0
    while plain.agents:
        assert env.agents == everybody
        actions = actions_for(env, step)
        observations, rewards, *_ = env.step(actions)
        expected, paid, *_ = plain.step({a: actions[a] for a in plain.agents})
        for agent in everybody:
            np.testing.assert_array_equal(observations[agent], expected.get(agent, 0 * observations[agent]))
            assert rewards[agent] == paid.get(agent, 0)
        step += 1


@pytest.mark.parametrize("copies", [1, 2])
def test_supersuits_vector_envs(parallel_game, supersuit, copies):
    if not suits(parallel_game):
        with pytest.raises(AssertionError):
            suited(supersuit, parallel_game).reset()
        return
    plain = [suited(supersuit, parallel_game) for _ in range(copies)]
    agents = plain[0].possible_agents
    env = supersuit.pettingzoo_env_to_vec_env_v1(suited(supersuit, parallel_game))
    env = supersuit.concat_vec_envs_v1(env, copies, num_cpus=0, base_class="gymnasium")
    observations, _ = env.reset(seed=5)
    expected = np.concatenate([rows(agents, p.reset(seed=5 + k)[0]) for k, p in enumerate(plain)])
    np.testing.assert_array_equal(observations, expected)
    action_space = plain[0].action_space(agents[0])
    action_space.seed(5)
    for _ in range(LIMIT - 1):
        actions = np.stack([action_space.sample() for _ in range(env.num_envs)])
        observations, rewards, *_ = env.step(actions)
        parts = actions.reshape(copies, len(agents), *actions.shape[1:])
        results = [p.step(dict(zip(agents, part, strict=True))) for p, part in zip(plain, parts, strict=True)]
        np.testing.assert_array_equal(rewards, np.concatenate([rows(agents, r[1]) for r in results]).astype("f4"))
        parts = observations.reshape(copies, len(agents), *observations.shape[1:])
        for p, part, result in zip(plain, parts, results, strict=True):
            if p.agents:  # SuperSuit has begun the next episode where this one ended
                np.testing.assert_array_equal(part, rows(agents, result[0]))
        if any(not p.agents for p in plain):
            break


def rows(agents: list[str], values: dict[str, Any]) -> np.ndarray:
    return np.stack([values[a] for a in agents])


def suits(game: Any) -> bool:
    env = parallel_env(game)
    alike = all(env.action_space(a) == env.action_space(env.possible_agents[0]) for a in env.possible_agents)
    return plain_boxes(env) and (alike or paddable(env))
