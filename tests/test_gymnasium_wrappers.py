"""Every vector wrapper of Gymnasium does over our batches what it does over Gymnasium's SyncVectorEnv."""

from __future__ import annotations

import dataclasses
import sys
import types
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv, VectorRewardWrapper
from gymnasium.wrappers import vector as wrappers
from toys.screen import Screen

from gpuzoo import VectorEnv, make_vec
from gpuzoo.interfaces.single import SingleEnv

pytestmark = pytest.mark.one_of_a_kind

MODES = ("next_step", "same_step", "disabled")
ENVS = 3


def is_box(env: Any) -> bool:
    return isinstance(env.single_observation_space, spaces.Box)


def is_picture(env: Any) -> bool:
    space = env.single_observation_space
    return is_box(env) and space.dtype == np.uint8 and bool((space.high == 255).all())


def is_bounded(env: Any) -> bool:
    return is_box(env) and env.single_observation_space.is_bounded()


def acts_in_box(env: Any) -> bool:
    return isinstance(env.single_action_space, spaces.Box)


def every(env: Any) -> bool:
    return True


NEXT_STEP_ONLY = {
    "disabled": "Expected env.metadata['autoreset_mode'] to be AutoresetMode.NEXT_STEP, got AutoresetMode.DISABLED"
}
OBSERVATIONS = {"same_step": "Expected autoreset_mode to be NEXT_STEP or DISABLED, got AutoresetMode.SAME_STEP"}


@dataclasses.dataclass(frozen=True)
class Case:
    """Arguments of a wrapper, which envs it is for, and the modes that it refuses, with its message.

    Some wrappers write into what the env returned; in next-step and same-step mode a partial reset returns that again.
    """

    arguments: Callable[[Any], Mapping[str, Any]] = lambda env: {}
    fits: Callable[[Any], bool] = every
    refuses: Mapping[str, str] = dataclasses.field(default_factory=dict)
    drawn: bool = False
    in_place: bool = False


def flipped(env: Any) -> dict[str, Any]:
    space = env.single_observation_space
    return {"wrapper": gymnasium.wrappers.TransformObservation, "func": lambda x: -x, "observation_space": space}


def torch_target(env: Any) -> dict[str, Any]:
    return {"env_xp": np, "target_xp": pytest.importorskip("torch")}


CASES: dict[str, Case] = {
    "VectorizeTransformObservation": Case(flipped, is_box, OBSERVATIONS, in_place=True),
    "VectorizeTransformAction": Case(
        lambda env: {
            "wrapper": gymnasium.wrappers.TransformAction,
            "func": lambda action: action * 0 + env.single_action_space.low,
            "action_space": env.single_action_space,
        },
        acts_in_box,
    ),
    "VectorizeTransformReward": Case(
        lambda env: {"wrapper": gymnasium.wrappers.TransformReward, "func": lambda reward: 3 * reward + 1}
    ),
    "DictInfoToList": Case(),
    "TransformObservation": Case(lambda env: {"func": lambda x: 2 * x}, is_box, OBSERVATIONS),
    "FilterObservation": Case(
        lambda env: {"filter_keys": ["action_mask"]},
        lambda env: isinstance(env.single_observation_space, spaces.Dict),
        OBSERVATIONS,
    ),
    "FlattenObservation": Case(refuses=OBSERVATIONS),
    "GrayscaleObservation": Case(fits=is_picture, refuses=OBSERVATIONS),
    "ResizeObservation": Case(lambda env: {"shape": (12, 16)}, is_picture, OBSERVATIONS),
    "ReshapeObservation": Case(
        lambda env: {"shape": (1, *(env.single_observation_space.shape or ()))}, is_box, OBSERVATIONS
    ),
    "RescaleObservation": Case(
        lambda env: {"min_obs": np.float32(-3), "max_obs": np.float32(5)},
        lambda env: is_bounded(env) and env.single_observation_space.dtype.kind != "u",
        OBSERVATIONS,
    ),
    "DtypeObservation": Case(lambda env: {"dtype": np.float64}, is_box, OBSERVATIONS),
    "NormalizeObservation": Case(fits=is_box, refuses=OBSERVATIONS | NEXT_STEP_ONLY),
    "TransformAction": Case(lambda env: {"func": lambda actions: actions[::-1].copy()}),
    "ClipAction": Case(fits=acts_in_box),
    "RescaleAction": Case(lambda env: {"min_action": np.float32(-1), "max_action": np.float32(1)}, acts_in_box),
    "TransformReward": Case(lambda env: {"func": lambda rewards: rewards - 2}),
    "ClipReward": Case(lambda env: {"min_reward": -0.5, "max_reward": 0.5}),
    "NormalizeReward": Case(),
    "RecordEpisodeStatistics": Case(),
    "RecordVideo": Case(lambda env: {"video_folder": "videos", "episode_trigger": every}, drawn=True),
    "HumanRendering": Case(drawn=True),
    "ArrayConversion": Case(torch_target),
    "NumpyToTorch": Case(),
}
CONVERSIONS = ("ArrayConversion", "NumpyToTorch")
#: these go around envs of JAX, and JAX is not needed here
JAX = ("JaxToNumpy", "JaxToTorch")


def test_there_is_a_case_for_each_wrapper():
    assert {*CASES, *JAX} == set(wrappers.__all__)


@pytest.mark.parametrize("name", JAX)
def test_jax_is_not_needed(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    for module in [m for m in sys.modules if m.startswith("gymnasium") and "jax" in m]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(ImportError, match="jax"):
        getattr(wrappers, name)(VectorEnv("CartPole-v1", 2, device="cpu"))


# ---- the same batch twice ----


class Reference(VectorRewardWrapper):
    """SyncVectorEnv with what a wrapper around it would otherwise see differently."""

    def rewards(self, rewards: np.ndarray) -> np.ndarray:
        return rewards.astype(np.float32)  # float64 ones are added up to other sums

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        # SyncVectorEnv takes the mask out of the caller's dictionary, and a wrapper then thinks that all were reset.
        return self.env.reset(seed=seed, options=None if options is None else dict(options))


def both(game: Any, mode: str, drawn: bool) -> tuple[Any, Any]:
    render_mode = "rgb_array" if drawn else None
    options = {"max_episode_steps": 3 if drawn else 6, "render_mode": render_mode}
    ours = VectorEnv(game, ENVS, autoreset_mode=mode, device="cpu", **options)
    sync = SyncVectorEnv([lambda: SingleEnv(game, **options)] * ENVS, autoreset_mode=ours.autoreset_mode)
    for env in (ours, sync):
        env.metadata["render_fps"] = 10_000  # HumanRendering waits for the clock
    return ours, Reference(sync)


def wrapped(name: str, env: Any) -> Any:
    return getattr(wrappers, name)(env, **CASES[name].arguments(env))


def refused(name: str, env: Any) -> tuple[type, str] | None:
    """What a wrapper says about an env that it does not take."""
    try:
        wrapped(name, env)
    except Exception as error:
        return type(error), str(error).replace(str(env), "ENV").replace(str(env.unwrapped), "ENV")
    return None


def play(env: Any, mode: str, steps: int, partial: bool) -> list[Any]:
    """All that resets and steps return, with a partial reset on the way, in arrays of its own."""
    env.action_space.seed(4)
    out = [fixed(env.reset(seed=3))]
    done = np.zeros(ENVS, np.bool_)
    for step in range(steps):
        if (mode == "disabled" and done.any()) or (partial and step == steps // 2):
            mask = done if done.any() else np.arange(ENVS) == 1
            if isinstance(env, wrappers.NormalizeObservation):  # it refuses partial resets
                mask = np.ones(ENVS, np.bool_)
            out.append(fixed(env.reset(options={"reset_mask": mask.copy()})))
        actions = env.action_space.sample()
        values = env.step(torch_if(type(env).__name__ in CONVERSIONS, actions))
        done = np.asarray(values[2]) | np.asarray(values[3])
        out.append(fixed(values))
    return out


def torch_if(wanted: bool, actions: np.ndarray) -> Any:
    return sys.modules["torch"].as_tensor(actions) if wanted else actions


def fixed(value: Any) -> Any:
    """A copy in which both sides look alike: final observations by env, no clock, tensors as arrays."""
    if isinstance(value, tuple | list):
        return [fixed(v) for v in value]
    if not isinstance(value, Mapping):
        if hasattr(value, "numpy"):
            return value.numpy().copy()
        return np.array(value)
    out = {k: fixed(v) for k, v in value.items() if k != "t"}
    if "final_obs" in out and "_final_obs" in out:
        final = value["final_obs"]
        rows = np.flatnonzero(np.asarray(out["_final_obs"]))
        out["final_obs"] = [
            fixed({k: v[i] for k, v in final.items()} if isinstance(final, dict) else final[i]) for i in rows
        ]
    return out


def compare(where: str, ours: Any, theirs: Any) -> None:
    if isinstance(theirs, list):
        assert len(ours) == len(theirs), where
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            compare(f"{where}, {k}", a, b)
    elif isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), where
        for key in theirs:
            compare(f"{where}, {key}", ours[key], theirs[key])
    else:
        # whole numbers as observations are int64 in Gymnasium's spaces, and int32 in ours, which they contain
        assert ours.dtype == theirs.dtype or {ours.dtype, theirs.dtype} == {np.dtype("i4"), np.dtype("i8")}, where
        np.testing.assert_array_equal(ours, theirs, where)


# ---- the matrix ----


def pictures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Puts a list in place of MoviePy's video files."""
    videos: list[Any] = []

    class ImageSequenceClip:
        def __init__(self, frames: list[np.ndarray], fps: int) -> None:
            videos.append([fixed(f) for f in frames])

        def write_videofile(self, path: str, logger: Any) -> None:
            videos[-1].append(np.array(path))

    for module in ("moviepy", "moviepy.video", "moviepy.video.io", "moviepy.video.io.ImageSequenceClip"):
        monkeypatch.setitem(sys.modules, module, types.ModuleType(module))
    sys.modules["moviepy.video.io.ImageSequenceClip"].ImageSequenceClip = ImageSequenceClip  # type: ignore[attr-defined]
    return videos


@pytest.mark.filterwarnings(
    "ignore:.*Recorded episodes will not contain the last frame of the episode:UserWarning",  # same-step mode
    "ignore:.*Overwriting existing videos:UserWarning",  # of the other side
    "ignore:overflow encountered in cast:RuntimeWarning",  # Box compares finite float32 bounds with float64's range
)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.rotates] * case.drawn) for name, case in CASES.items()]
)
def test_wrapper(game_to_wrap, name, mode, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    case = CASES[name]
    videos = pictures(monkeypatch)
    ours, theirs = both(game_to_wrap, mode, case.drawn)
    if not case.fits(ours) or mode in case.refuses:
        says = refused(name, ours)
        assert says == refused(name, theirs)
        if mode in case.refuses:
            assert says == (ValueError, case.refuses[mode])
        return
    stories, seen = [], []
    for env in (ours, theirs):
        videos.clear()
        # Gymnasium cannot convert SyncVectorEnv's final observations, an array of objects: there ours stay as they are.
        if name in CONVERSIONS and mode == "same_step" and env is theirs:
            env = both(game_to_wrap, mode, case.drawn)[0]
        else:
            env = wrapped(name, env)
        partial = mode == "disabled" or not case.in_place
        stories.append(play(env, mode, 5 if case.drawn else 30, partial))
        if name == "HumanRendering":
            seen.append(sys.modules["pygame"].surfarray.array3d(env.window))
        env.close()
        seen += videos
    compare(f"{name} in {mode} mode", *stories)
    if case.drawn:
        half = len(seen) // 2
        assert half
        compare("pictures", seen[:half], seen[half:])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.fits is every and not case.drawn])
def test_wrapper_around_rows_of_several_agents(multi_game, name):
    """SyncVectorEnv has no such rows, but who is alive must come through. The games share out the autoreset modes."""
    case, mode = CASES[name], MODES[zlib.crc32(f"{multi_game.id} {name}".encode()) % len(MODES)]
    env, plain = (
        make_vec(multi_game, num_worlds=2, device="cpu", autoreset_mode=mode, max_episode_steps=5) for _ in range(2)
    )
    if mode in case.refuses:
        assert refused(name, env) == (ValueError, case.refuses[mode])
        return
    env = wrapped(name, env)
    env.action_space.seed(4)
    for e in (env, plain):
        e.reset(seed=3)
    for _ in range(12):
        actions = env.action_space.sample()
        _, rewards, *_, infos = env.step(torch_if(name in CONVERSIONS, actions))
        expected = plain.step(actions[::-1] if name == "TransformAction" else actions)[-1]
        alive = [info["alive"] for info in infos] if isinstance(infos, list) else infos["alive"]
        assert np.array_equal(np.asarray(alive), expected["alive"])
        assert rewards.shape == (env.num_envs,)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "game_to_wrap" in metafunc.fixturenames:
        from conftest import GAMES, ROTATION, TOYS, one_of_a_kind

        singles = [game for game in (*GAMES, *TOYS, Screen) if game.single()]
        games = one_of_a_kind(singles, metafunc.config.stash[ROTATION])
        metafunc.parametrize("game_to_wrap", games, ids=[game.id for game in games])
