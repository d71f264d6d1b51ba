"""CleanRL's scripts as they are released, with nothing but the line that makes their envs replaced."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

TESTS = Path(__file__).parents[2]
ENV_LINE = re.compile(r"^    envs = gym\.vector\.SyncVectorEnv\(\n        \[make_env\(.*\)\]\n    \)\n", re.MULTILINE)
IMPORTS = "    import gpuzoo.wrappers.cleanrl as gpuzoo_cleanrl\n    from toys.glide import Glide\n"

#: script -> the line in place of its own, and options for a run of seconds
SCRIPTS = {
    "ppo.py": (  # of the release that is tested; today's takes the line of dqn.py
        "gpuzoo_cleanrl.make_gym(args.env_id, args.num_envs, seed=args.seed)",
        "--num-envs 4 --num-steps 32 --total-timesteps 512",
    ),
    "dqn.py": (
        "gpuzoo_cleanrl.make(args.env_id, args.num_envs)",
        "--total-timesteps 600 --learning-starts 100",
    ),
    "ppo_continuous_action.py": (
        "gpuzoo_cleanrl.make(Glide, args.num_envs, flatten=True)",
        "--num-envs 2 --num-steps 128 --total-timesteps 512",
    ),
}
Run = Callable[..., np.ndarray]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a script; returns the returns of all episodes, in order, from its TensorBoard log."""

    def go(script: str, line: str, options: str) -> np.ndarray:
        source = Path(str(distribution("cleanrl").locate_file(f"cleanrl/{script}"))).read_text()
        changed, count = ENV_LINE.subn(f"{IMPORTS}    envs = {line}\n", source)
        assert count == 1, "exactly one statement is replaced"
        path = tmp_path / script
        path.write_text(changed)
        words = [sys.executable, path.name, *options.split()]
        # One thread: the networks are small.
        variables = {**os.environ, "PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
        (log,) = (tmp_path / "runs").iterdir()
        events = EventAccumulator(str(log), size_guidance={"scalars": 0}).Reload()
        assert "episodic_return=" in done.stdout
        return np.array([event.value for event in events.Scalars("charts/episodic_return")])

    return go


@pytest.mark.parametrize("script", SCRIPTS)
def test_it_runs(script: str, run: Run) -> None:
    assert len(run(script, *SCRIPTS[script])) > 2


@pytest.mark.rotates
def test_ppo_balances_the_pole(run: Run) -> None:
    options = "--num-envs 8 --num-steps 64 --learning-rate 1e-3 --total-timesteps 200000"
    returns = run("ppo.py", SCRIPTS["ppo.py"][0], options)
    assert returns[:20].mean() < 60
    assert np.convolve(returns, np.full(20, 1 / 20), "valid").max() > 475


@pytest.mark.rotates
def test_dqn_learns(run: Run) -> None:
    options = "--learning-rate 1e-3 --total-timesteps 30000 --learning-starts 1000 --exploration-fraction 0.3"
    returns = run("dqn.py", SCRIPTS["dqn.py"][0], options)
    assert returns[:20].mean() < 60
    assert returns[-20:].mean() > 120


@pytest.mark.rotates
def test_ppo_with_continuous_actions_learns(run: Run) -> None:
    options = (
        "--num-envs 16 --num-steps 64 --num-minibatches 4 --learning-rate 1e-3 --gamma 0.9 --total-timesteps 60000"
    )
    returns = run("ppo_continuous_action.py", SCRIPTS["ppo_continuous_action.py"][0], options)
    assert returns[:20].mean() < -12
    assert returns[-50:].mean() > -12
