"""CooperativePong against PettingZoo's butterfly.cooperative_pong_v6: places, velocities, rewards, ends and pictures.

The original gets our velocities at the start of an episode and after a bounce that chance changed: both are rounded to
float32 here, and compared with the original's to 4 units of the last place. After that all numbers are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pettingzoo.butterfly.cooperative_pong.cooperative_pong import CooperativePong as Game
from pettingzoo.butterfly.cooperative_pong.cooperative_pong import parallel_env

from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.cooperative_pong.cooperative_pong import CooperativePong

pytestmark = [pytest.mark.rotates, pytest.mark.filterwarnings("ignore:.*Ball speed is larger:UserWarning")]

NAMES = ("left", "right", "x", "y", "vx", "vy")
CONFIGS: dict[str, dict[str, Any]] = {
    "default": {},
    "bounce": {"bounce_randomness": True},
    "flat": {"cake_paddle": False, "ball_speed": 7.25, "max_reward": 17.0, "off_screen_penalty": -3.5},
    "fast": {"ball_speed": 14.0, "left_paddle_speed": 5.75, "right_paddle_speed": 30.0},
    "large": {"render_ratio": 1, "ball_speed": 19.0},
    "odd": {"render_ratio": 3, "bounce_randomness": True},
    "seven": {"render_ratio": 7, "ball_speed": 2.5, "left_paddle_speed": 3.0, "right_paddle_speed": 4.0},
    "flat and small": {"render_ratio": 11, "cake_paddle": False, "ball_speed": 1.5},
    "smallest": {"render_ratio": 20, "ball_speed": 2.5, "left_paddle_speed": 1.0, "right_paddle_speed": 1.0},
}


def simulator(num_envs: int, **config: Any) -> Simulator:
    s = Simulator(CooperativePong, num_envs, device="cpu", autoreset_mode="disabled", **config)
    s.reset(seed=0)
    return s


class Bounce:
    """The original's generator: it turns the ball by nothing, so that ours turns it by its own angle."""

    def random(self) -> float:
        return 0.5


class Undrawn(Game):
    """PettingZoo's game, without its wrappers and its drawing."""

    def render(self) -> None:
        pass


def inject(game: Game, s: Simulator, k: int) -> None:
    if game.terminate or game.truncate:
        game.reset()
    state = {name: s.arrays[name][k].item() for name in NAMES}
    for paddle, top in ((game.p0, state["left"]), (game.p1, state["right"])):
        by = top - paddle.rects[0].y
        for rect in paddle.rects:
            rect.y += by
    game.ball._rect.topleft = state["x"], state["y"]
    game.ball._speed = [state["vx"], state["vy"]]
    game.num_frames = int(s.arrays["elapsed_steps"][k])


def compare(game: Game, s: Simulator, k: int, actions: Any) -> str:
    """One env's step, which ours has made, made by the original; returns what happened."""
    before = list(game.ball._speed)
    game.step(int(actions[0]), "paddle_0")
    game.step(int(actions[1]), "paddle_1")
    ball = game.ball._rect
    theirs = [game.p0.rects[0].y, game.p1.rects[0].y, ball.x, ball.y]
    assert [int(s.arrays[name][k]) for name in NAMES[:4]] == theirs
    velocity = np.array([s.arrays["vx"][k], s.arrays["vy"][k]], np.float64)
    bounced = False
    if game.ball._bounce_randomness:
        # turned by an angle of at most 0.01, which is our draw
        angle = np.angle(complex(*velocity) / complex(*game.ball._speed))
        assert abs(angle) < 0.01 + 1e-6
        assert abs(np.hypot(*velocity) / np.hypot(*before) - 1) < 4 * 2.0**-23
        bounced = angle != 0
        game.ball._speed = velocity.tolist()
    else:
        assert velocity.tolist() == list(game.ball._speed)
    for a, name in enumerate(("paddle_0", "paddle_1")):
        assert s.arrays["reward"][k, a] == np.float32(game.rewards[name])
        assert bool(s.arrays["terminated"][k, a]) == game.terminations[name]
        if not game.terminate:  # ours says both if the ball is lost in the last step
            assert bool(s.arrays["truncated"][k, a]) == game.truncations[name]
    turned = np.sign(velocity) != np.sign(before)
    return "lost" if game.terminate else "turned" if turned.any() or bounced else "flew"


def original(limit: int = 900, **config: Any) -> Game:
    """A game whose bounces are straight."""
    game = Undrawn(np.random.default_rng(0), max_cycles=limit, **config)
    game.reset()
    game.ball._randomizer = Bounce()
    return game


@pytest.mark.parametrize("name", CONFIGS)
def test_one_step(name: str) -> None:
    """800 wide states of each configuration: the ball anywhere, often at a paddle, a corner or a wall."""
    config, count = CONFIGS[name], 800
    s = simulator(count, **config)
    known = s.env.constants(s.program.cfg)
    rng = np.random.default_rng(list(CONFIGS).index(name))
    width, height, ball = known["COURT_WIDTH"], known["COURT_HEIGHT"], known["BALL"]
    left = rng.integers(0, height - known["LEFT_HEIGHT"] + 1, count)
    right = rng.integers(0, height - known["RIGHT_HEIGHT"] + 1, count)
    at_left = rng.random(count) < 0.4
    near = np.where(at_left, left, right) + rng.integers(-2 * ball, known["RIGHT_HEIGHT"] + 2 * ball, count)
    y = np.where(rng.random(count) < 0.7, near, rng.integers(0, height, count)).clip(-ball // 3, height - ball)
    deep = np.where(
        at_left, rng.integers(0, 2 * ball, count), width - ball - rng.integers(0, 5 * known["RIGHT_WIDTH"], count)
    )
    x = np.where(rng.random(count) < 0.8, deep, rng.integers(0, width - ball, count)).clip(0, width - ball)
    angle = rng.uniform(0, 2 * np.pi, count)
    speed = s.program.cfg.ball_speed
    s.set_state({
        "left": left, "right": right, "x": x, "y": y, "vx": np.float32(speed * np.cos(angle)),
        "vy": np.float32(speed * np.sin(angle)), "elapsed_steps": rng.choice([0, 5, 898, 899], count),
    })  # fmt: skip
    game, found = original(**config), []
    start = simulator(count, **config)
    start.set_state(s.state())
    s.arrays["action"][..., 0] = rng.integers(0, 3, (count, 2))
    s.step()
    for k in range(count):
        inject(game, start, k)
        found.append(compare(game, s, k, s.arrays["action"][k, :, 0]))
    happened = {word: found.count(word) for word in ("lost", "turned", "flew")}
    assert min(happened.values()) > 8, happened


@pytest.mark.parametrize("name", CONFIGS)
def test_whole_episodes(name: str) -> None:
    """120 episodes of each configuration, 1,080 together, by paddles that often follow the ball."""
    config, count, limit = CONFIGS[name], 120, 300
    s = simulator(count, max_episode_steps=limit, **config)
    known = s.env.constants(s.program.cfg)
    games, rng = [original(limit=limit, **config) for _ in range(count)], np.random.default_rng(0)
    for k, game in enumerate(games):
        theirs = [game.p0.rects[0].y, game.p1.rects[0].y, *game.ball._rect.topleft]
        assert [int(s.arrays[key][k]) for key in NAMES[:4]] == theirs
        inject(game, s, k)
    running = np.ones(count, bool)
    while running.any():
        middle = s.arrays["y"] + known["BALL"] / 2
        skilled = rng.random((count, 2)) < np.where(np.arange(count) % 2, 0.9, 0.3)[:, None]
        paddles = np.stack(
            [s.arrays["left"] + known["LEFT_HEIGHT"] / 2, s.arrays["right"] + known["RIGHT_HEIGHT"] / 2], 1
        )
        follow = np.where(middle[:, None] > paddles, 2, 1)
        s.arrays["action"][..., 0] = np.where(skilled, follow, rng.integers(0, 3, (count, 2)))
        s.step()
        for k in np.flatnonzero(running):
            compare(games[k], s, k, s.arrays["action"][k, :, 0])
            over = games[k].terminate or games[k].truncate
            assert over == bool(s.arrays["ended"][k])
            running[k] = not over


def angles(game: Game, count: int) -> np.ndarray:
    """Angles of the original's starts."""
    found = []
    for _ in range(count):
        game.reset()
        found.append(np.arctan2(game.ball._speed[1], game.ball._speed[0]))
    return np.array(found)


def test_start() -> None:
    """Directions of 4,000 starts are those of 4,000 of the original, in 36 sectors."""
    count = 4000
    s = simulator(count)
    ours = np.arctan2(s.arrays["vy"], s.arrays["vx"])
    assert np.abs(np.hypot(s.arrays["vy"], s.arrays["vx"]) / 9 - 1).max() < 4 * 2.0**-23
    theirs = angles(original(), count)
    edges = np.radians(np.arange(-180, 181, 10) + 5)
    a, b = (np.histogram(x, edges)[0] for x in (ours, theirs))
    assert ((a == 0) == (b == 0)).all()
    part = b > 0
    assert np.abs((a - b)[part] / np.sqrt((a + b)[part])).max() < 4.5


@pytest.mark.parametrize("name", ["default", "flat", "large", "seven", "smallest"])
def test_pictures(name: str) -> None:
    """Every pixel through PettingZoo's parallel interface, and those of the state."""
    config, limit = CONFIGS[name], 40
    s = simulator(1, max_episode_steps=limit, observation_type="image", **config)
    env = parallel_env(render_mode="rgb_array", max_cycles=limit, **config)
    rng = np.random.default_rng(1)
    for episode in range(3):
        s.reset(seed=episode)
        observations, _ = env.reset(seed=episode)
        game = env.unwrapped.env
        game.ball._speed = [s.arrays["vx"][0].item(), s.arrays["vy"][0].item()]
        while True:
            for a, name in enumerate(env.possible_agents):
                np.testing.assert_array_equal(
                    s.arrays["observation"][0, a].reshape(observations[name].shape), observations[name]
                )
            np.testing.assert_array_equal(s.global_state()[0], env.state())
            if not env.agents:
                break
            actions = rng.integers(0, 3, 2)
            s.arrays["action"][0, :, 0] = actions
            s.step()
            observations, rewards, *_ = env.step(dict(zip(env.agents, actions.tolist(), strict=True)))
            assert s.arrays["reward"][0].tolist() == [np.float32(rewards[name]) for name in env.possible_agents]
    assert s.arrays["observation"].max() == 255


@pytest.mark.filterwarnings("ignore:.*render method without:UserWarning")
def test_original_observes_black_without_render_mode() -> None:
    """Which the class docstring says."""
    observations, _ = parallel_env().reset(seed=0)
    assert not observations["paddle_0"].any()
