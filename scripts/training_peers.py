"""Other libraries' trainers, run in their own interpreters for ``bench_training.py``.

    PYTHON scripts/training_peers.py NAME PLACE < SETTING

Every peer's file runs as it is. A driver takes a setting and where the peer lies, and returns what it measured.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import io
import json
import runpy
import statistics
import sys
import time
import types
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is trained, and how: CleanRL's hyper-parameters; actor and critic each have two layers of 64."""

    title: str
    game: str = "CartPole-v1"
    num_envs: int = 4
    total_steps: int = 500_000
    seeds: int = 1
    seed: int = 1
    num_steps: int = 128
    epochs: int = 4
    minibatches: int = 4
    lr: float = 2.5e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_eps: float = 0.2
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    activation: str = "tanh"
    config: dict[str, float] = dataclasses.field(default_factory=dict)  # of our game, to make it the peers' game

    @property
    def updates(self) -> int:
        return self.total_steps // (self.num_envs * self.num_steps)

    @property
    def steps(self) -> int:
        """Env steps of all seeds: whole rollouts only."""
        return self.updates * self.num_envs * self.num_steps * self.seeds


def versions(*names: str) -> str:
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def last_tenth(means: list[float | None]) -> float:
    """The mean over the last tenth of the updates, of those in which an episode ended."""
    last = [x for x in means[-max(1, len(means) // 10) :] if x is not None]
    return statistics.fmean(last) if last else float("nan")


def by_update(setting: Setting, ended: Iterable[tuple[int, float]]) -> list[float | None]:
    """Mean returns of each update from (steps so far, return) of each episode."""
    returns: list[list[float]] = [[] for _ in range(setting.updates)]
    for steps, value in ended:
        returns[(steps - 1) // (setting.num_envs * setting.num_steps)].append(value)
    return [statistics.fmean(x) if x else None for x in returns]


def drive_cleanrl(setting: Setting, path: str) -> dict[str, Any]:
    import torch.utils.tensorboard as tensorboard

    times: list[tuple[float, float]] = []
    ended: list[tuple[int, float]] = []

    class Writer:
        """Notes instead of writing files: CleanRL makes it before its envs and closes it in the end."""

        def __init__(self, _: str) -> None:
            times.append((time.perf_counter(), time.process_time()))

        def add_text(self, *_: object) -> None:
            pass

        def add_scalar(self, name: str, value: Any, steps: int) -> None:
            if name == "charts/episodic_return":
                ended.append((steps, value.item()))

        def close(self) -> None:
            times.append((time.perf_counter(), time.process_time()))

    tensorboard.SummaryWriter = Writer  # type: ignore[assignment, misc]
    options = {
        "env-id": setting.game,
        "seed": setting.seed,
        "total-timesteps": setting.total_steps,
        "learning-rate": setting.lr,
        "num-envs": setting.num_envs,
        "num-steps": setting.num_steps,
        "gamma": setting.gamma,
        "gae-lambda": setting.gae_lambda,
        "num-minibatches": setting.minibatches,
        "update-epochs": setting.epochs,
        "clip-coef": setting.clip_eps,
        "ent-coef": setting.ent_coef,
        "vf-coef": setting.vf_coef,
        "max-grad-norm": setting.max_grad_norm,
    }
    sys.argv = [path, "--no-cuda", *(str(x) for name, value in options.items() for x in (f"--{name}", value))]
    runpy.run_path(path, run_name="__main__")
    return {
        "train": times[1][0] - times[0][0],
        "train_cpu": times[1][1] - times[0][1],
        "return": last_tenth(by_update(setting, ended)),
        "versions": versions("torch", "gymnasium"),
    }


def drive_sb3(setting: Setting) -> dict[str, Any]:
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    ended: list[tuple[int, float]] = []

    class Note(BaseCallback):
        def _on_step(self) -> bool:
            ended.extend((self.num_timesteps, x["episode"]["r"]) for x in self.locals["infos"] if "episode" in x)
            return True

    start = time.perf_counter()
    model = PPO(
        "MlpPolicy",
        make_vec_env(setting.game, setting.num_envs, seed=setting.seed),
        learning_rate=lambda remaining: setting.lr * remaining,
        n_steps=setting.num_steps,
        batch_size=setting.num_envs * setting.num_steps // setting.minibatches,
        n_epochs=setting.epochs,
        gamma=setting.gamma,
        gae_lambda=setting.gae_lambda,
        clip_range=setting.clip_eps,
        clip_range_vf=setting.clip_eps,
        normalize_advantage=True,
        ent_coef=setting.ent_coef,
        vf_coef=setting.vf_coef / 2,  # its value loss is the whole squared error, the others' is half of it
        max_grad_norm=setting.max_grad_norm,
        policy_kwargs={"net_arch": {"pi": [64, 64], "vf": [64, 64]}},
        device="cpu",
        seed=setting.seed,
    )
    model.learn(setting.steps, Note())
    return {
        "train": time.perf_counter() - start,
        "return": last_tenth(by_update(setting, ended)),
        "versions": versions("stable-baselines3", "torch", "gymnasium"),
    }


def jax_config(setting: Setting) -> dict[str, Any]:
    """The names that PureJaxRL and JaxMARL give to hyper-parameters."""
    return {
        "LR": setting.lr,
        "NUM_ENVS": setting.num_envs,
        "NUM_STEPS": setting.num_steps,
        "TOTAL_TIMESTEPS": setting.total_steps,
        "UPDATE_EPOCHS": setting.epochs,
        "NUM_MINIBATCHES": setting.minibatches,
        "GAMMA": setting.gamma,
        "GAE_LAMBDA": setting.gae_lambda,
        "CLIP_EPS": setting.clip_eps,
        "ENT_COEF": setting.ent_coef,
        "VF_COEF": setting.vf_coef,
        "MAX_GRAD_NORM": setting.max_grad_norm,
        "ACTIVATION": setting.activation,
        "ANNEAL_LR": True,
    }


def run_jax(setting: Setting, train: Callable[..., Any]) -> tuple[dict[str, Any], Any]:
    """Compiles a training function, then runs it; all seeds at once by ``vmap``."""
    import jax

    keys: Any = jax.random.PRNGKey(setting.seed)
    if setting.seeds > 1:
        keys, train = jax.random.split(keys, setting.seeds), jax.vmap(train)
    start = time.perf_counter()
    compiled = jax.jit(train).lower(keys).compile()
    middle = time.perf_counter()
    out = jax.block_until_ready(compiled(keys))
    return {"compile": middle - start, "train": time.perf_counter() - middle}, out["metrics"]


#: names of Gymnax that are not ours
GYMNAX = {"Breakout-MinAtar-v1": "Breakout-MinAtar"}


def drive_purejaxrl(setting: Setting, folder: str) -> dict[str, Any]:
    import numpy as np

    sys.path.insert(0, str(Path(folder, "purejaxrl")))
    make_train = runpy.run_path(str(Path(folder, "purejaxrl", "ppo.py")))["make_train"]
    found, metrics = run_jax(
        setting, make_train({**jax_config(setting), "ENV_NAME": GYMNAX.get(setting.game, setting.game)})
    )
    shape = (setting.seeds, setting.updates, -1)
    returns, ended = (np.reshape(metrics[f"returned_episode{x}"], shape) for x in ("_returns", ""))
    counts = ended.sum((0, 2))
    sums = (returns * ended).sum((0, 2), dtype=float)
    means = [float(x / n) if n else None for x, n in zip(sums, counts, strict=True)]
    return found | {"return": last_tenth(means), "versions": versions("jax", "flax", "gymnax")}


def drive_jaxmarl(setting: Setting, path: str) -> dict[str, Any]:
    import jaxmarl
    import numpy as np

    wandb = types.ModuleType("wandb")
    wandb.log = lambda _: None  # type: ignore[attr-defined]
    sys.modules["wandb"] = wandb
    make_train = runpy.run_path(path)["make_train"]
    game = {"SimpleSpread-v0": "MPE_simple_spread_v3"}[setting.game]
    found, metrics = run_jax(setting, make_train({**jax_config(setting), "ENV_NAME": game, "ENV_KWARGS": {}}))
    agents = jaxmarl.make(game).num_agents  # it multiplies the returns that it logs by their number
    means = [float(x) / agents for x in np.asarray(metrics["returned_episode_returns"])]
    return found | {"return": last_tenth(means), "versions": versions("jax", "flax", "jaxmarl")}


DRIVERS: dict[str, Callable[..., dict[str, Any]]] = {
    "cleanrl": drive_cleanrl,
    "sb3": drive_sb3,
    "purejaxrl": drive_purejaxrl,
    "jaxmarl": drive_jaxmarl,
}


def drive(name: str, *place: str) -> None:
    """Reads a setting from the standard input, and writes what the driver measured to the standard output."""
    with redirect_stdout(io.StringIO()):
        found = DRIVERS[name](Setting(**json.load(sys.stdin)), *place)
    print(json.dumps(found))


if __name__ == "__main__":
    drive(*sys.argv[1:])
