"""BenchMARL: experiments with any game of several agents, and one that learns."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarl.algorithms import IqlConfig, MappoConfig
from benchmarl.experiment import Experiment, ExperimentConfig
from benchmarl.models.cnn import CnnConfig
from benchmarl.models.mlp import MlpConfig
from torchrl.envs import Compose, TransformedEnv
from torchrl.envs.utils import check_env_specs
from toys.herd import Herd
from toys.nim import Nim
from toys.orchard import Orchard

import gpuzoo
from gpuzoo.wrappers.benchmarl import GpuZooTask
from gpuzoo.wrappers.torchrl import GpuZooEnv

for toy in (Herd, Nim, Orchard):
    gpuzoo.register(toy)


def experiment(task: GpuZooTask, folder: Path, algorithm: Any = None, model: Any = None, **changes: Any) -> Experiment:
    config = ExperimentConfig.get_from_yaml()
    settings = {
        "loggers": [],
        "save_folder": str(folder),
        "max_n_frames": None,
        "max_n_iters": 2,
        "evaluation": False,
        "checkpoint_at_end": False,
        "on_policy_collected_frames_per_batch": 64,
        "on_policy_n_envs_per_worker": 8,
        "on_policy_n_minibatch_iters": 1,
        "on_policy_minibatch_size": 32,
        "off_policy_collected_frames_per_batch": 64,
        "off_policy_n_envs_per_worker": 8,
        "off_policy_n_optimizer_steps": 2,
        "off_policy_train_batch_size": 32,
        "off_policy_memory_size": 256,
    }
    for name, value in (settings | changes).items():
        assert hasattr(config, name), name
        setattr(config, name, value)
    return Experiment(
        task=task,
        algorithm_config=algorithm or MappoConfig.get_from_yaml(),
        model_config=model or model_of(task),
        critic_model_config=critic_of(task),
        seed=0,
        config=config,
    )


def mlp() -> Any:
    return MlpConfig(num_cells=[32], layer_class=torch.nn.Linear, activation_class=torch.nn.Tanh)


def critic_of(task: GpuZooTask) -> Any:
    """A network for a flat global state; None is that of the policy."""
    state = task.get_env_fun(1, False, 0, "cpu")().simulator.layout.state_space
    return mlp() if state is not None and len(state.shape) == 1 else None


def model_of(task: GpuZooTask) -> Any:
    """A small network for flat observations or for pictures."""
    env = task.get_env_fun(1, False, 0, "cpu")()
    axes = {env.full_observation_spec_unbatched[group, "observation"].ndim - 1 for group in env.group_map}
    if 3 not in axes:
        return mlp()
    model = CnnConfig.get_from_yaml()
    model.cnn_num_cells, model.cnn_kernel_sizes, model.cnn_strides, model.cnn_paddings = [8], 3, 1, 0
    model.mlp_num_cells = [32]
    return model


def test_specs_of_the_env(game: Any) -> None:
    """The env, with the version of TorchRL that BenchMARL asks for."""
    check_env_specs(GpuZooEnv(game, 4, device="cpu", max_episode_steps=2), break_when_any_done="both")


def test_an_experiment_with_any_game(multi_game: Any, tmp_path: Path) -> None:
    task = GpuZooTask(multi_game.id, {"max_episode_steps": 6})
    run = experiment(task, tmp_path, evaluation=True, evaluation_interval=64, evaluation_episodes=2, render=False)
    run.run()
    assert run.total_frames == 128
    assert run.group_map == GpuZooEnv(multi_game, 1, device="cpu").group_map


@pytest.mark.parametrize("continuous", [False, True])
def test_kinds_of_actions(continuous: bool, tmp_path: Path) -> None:
    task = GpuZooTask("SimpleSpread-v0", {"continuous_actions": continuous, "N": 2, "max_episode_steps": 6})
    assert task.supports_continuous_actions() == continuous != task.supports_discrete_actions()
    run = experiment(task, tmp_path)
    assert run.action_spec["agent", "action"].shape == ((2, 5) if continuous else (2,))
    run.run()


def test_several_actions_at_once() -> None:
    """BenchMARL's one number for an agent stands for a combination of MultiDiscrete actions."""
    task = GpuZooTask("TagContinuous-v0")
    raw = task.get_env_fun(2, False, 0, "cpu")()
    env = TransformedEnv(raw, Compose(*task.get_env_transforms(raw)))
    check_env_specs(env, break_when_any_done="both")
    nvec = raw.simulator.layout.action_spaces["runner"].nvec
    now = env.reset()
    for group, names in env.group_map.items():
        spec = task.action_spec(env)[group, "action"]
        assert spec.space.n == nvec.prod()
        now[group, "action"] = torch.arange(2 * len(names)).reshape(2, -1) % spec.space.n
    env.step(now)
    for group in env.group_map:
        first = raw.simulator.layout.first[group]
        actions = torch.as_tensor(raw.simulator.arrays["action"][:, first : first + len(env.group_map[group])])
        assert (actions[..., 0] * int(nvec[1]) + actions[..., 1] == now[group, "action"]).all()


def test_action_masks_reach_the_policy(tmp_path: Path) -> None:
    run = experiment(GpuZooTask("Herd-v0"), tmp_path, IqlConfig.get_from_yaml())
    assert run.action_mask_spec["wolf", "action_mask"].shape == (2, 5)
    batches: list[Any] = []
    run._on_batch_collected = batches.append
    run.run()
    for batch in batches:
        for group in ("wolf", "sheep"):
            mask, action = batch[group, "action_mask"], batch[group, "action"]
            assert mask.gather(-1, action[..., None]).all()
            assert not mask.all()


def test_a_central_critic_sees_the_games_own_state(tmp_path: Path) -> None:
    run = experiment(GpuZooTask("Orchard-v0", {"max_episode_steps": 6}), tmp_path)
    assert run.state_spec["state"].shape == (8, 16, 2), "as the game has it"
    batches: list[Any] = []
    run._on_batch_collected = batches.append
    run.run()
    assert all(batch["state"].shape[-3:] == (8, 16, 2) and batch["state"].any() for batch in batches)
    assert "state" in run.losses["picker"].critic_network.in_keys


def test_a_task_survives_pickle() -> None:
    task = GpuZooTask("SimpleSpread-v0", {"N": 2})
    assert pickle.loads(pickle.dumps(task)) == task


def test_a_game_of_one_agent() -> None:
    with pytest.raises(ValueError, match=r"CartPole-v1 has one agent: use gpuzoo.wrappers.torchrl.GpuZooEnv"):
        GpuZooTask("CartPole-v1")


def test_no_time_limit(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="SimpleSpread-v0 has no time limit, which BenchMARL needs"):
        experiment(GpuZooTask("SimpleSpread-v0", {"max_episode_steps": None}), tmp_path)


def test_without_the_library() -> None:
    code = "import sys; sys.modules['torch'] = sys.modules['benchmarl'] = None; import gpuzoo.wrappers.benchmarl"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    message = "ImportError: gpuzoo.wrappers.benchmarl needs BenchMARL: pip install benchmarl 'gpuzoo[torchrl]'."
    assert message in done.stderr


@pytest.mark.rotates
def test_mappo_learns_to_spread(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    run = experiment(
        GpuZooTask("SimpleSpread-v0"),
        tmp_path,
        model=MlpConfig(num_cells=[64, 64], layer_class=torch.nn.Linear, activation_class=torch.nn.Tanh),
        max_n_iters=40,
        on_policy_collected_frames_per_batch=1600,
        on_policy_n_envs_per_worker=64,
        on_policy_n_minibatch_iters=8,
        on_policy_minibatch_size=800,
        lr=2e-3,
        gamma=0.95,
    )
    returns: list[float] = []
    run._on_batch_collected = lambda batch: returns.append(float(batch["next", "agent", "reward"].mean()) * 25)
    run.run()
    assert returns[0] < -24  # random play: about -26
    assert returns[-1] > -23
