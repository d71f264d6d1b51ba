"""PPO by both executors, and CleanRL's, at equal settings on one core: env steps by seconds of CPU, taking turns.

    python scripts/bench_executors.py [--repeat 5] [--steps 50000] [--num-envs 4] [--cleanrl PYTHON ppo.py]

PYTHON is an interpreter in which CleanRL's packages are installed, ppo.py its file. Seconds are those of the training
process, from its first rollout to its last update, without importing and compiling; a core that others use, too, makes
them more, so compare the best runs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from training_peers import Setting, versions

SCRIPTS = Path(__file__).resolve().parent


def train(executor: str, setting: Setting) -> dict[str, float]:
    """Trains in this process."""
    sys.path.insert(0, str(SCRIPTS.parent))
    from baselines import executors
    from baselines.ppo import PPO, Args

    import torch  # isort: skip

    torch.set_num_threads(1)
    names = ["num_envs", "total_steps", "seed", "num_steps", "epochs", "minibatches", "lr", "gamma", "gae_lambda",
             "clip_eps", "ent_coef", "vf_coef", "max_grad_norm", "activation"]  # fmt: skip
    args = Args(
        setting.game, device="cpu", hidden=(64, 64), encoder="mlp", anneal_lr=True, clip_values=True,
        normalize_advantages=True, normalize_observations=False, normalize_rewards=False,
        **{name: getattr(setting, name) for name in names},
    )  # fmt: skip
    trainer = PPO(args, executors.choose(executor, "cpu"))
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(setting.updates):
        trainer.iterate()
    return {"train": time.perf_counter() - start, "train_cpu": time.process_time() - cpu}


def run(command: list[str], setting: Setting) -> float:
    """Env steps by seconds of CPU of a command that reads a setting and writes what it measured."""
    text = json.dumps(dataclasses.asdict(setting))
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=SCRIPTS.parent)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stderr[-2000:]}")
    return setting.steps / float(json.loads(done.stdout.splitlines()[-1])["train_cpu"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each")
    parser.add_argument("--steps", type=int, default=50_000, help="env steps of a run")
    parser.add_argument("--num-envs", type=int, default=4)
    parser.add_argument("--cleanrl", nargs=2, metavar=("PYTHON", "FILE"))
    parser.add_argument("--train", choices=("plain", "fast"), help=argparse.SUPPRESS)  # a run, in a process of its own
    chosen = parser.parse_args()
    if chosen.train:
        print(json.dumps(train(chosen.train, Setting(**json.load(sys.stdin)))))
        return
    commands = {name: [sys.executable, __file__, "--train", name] for name in ("fast", "plain")}
    if chosen.cleanrl:
        python, file = chosen.cleanrl
        commands["CleanRL"] = [python, str(SCRIPTS / "training_peers.py"), "cleanrl", file]
    rates: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(chosen.repeat):
        setting = Setting("CartPole", num_envs=chosen.num_envs, total_steps=chosen.steps, seed=turn + 1)
        for name, command in commands.items():
            rates[name].append(run(command, setting))
            print(f"{name}: {rates[name][-1]:,.0f} steps/s", file=sys.stderr, flush=True)
    slowest = max(rates[[*rates][-1]])
    print(f"{versions('torch')}, {chosen.num_envs} envs, {chosen.steps:,} steps\n")
    print("| executor | steps by CPU s, best | median | to the last |\n|:--|--:|--:|--:|")
    for name, found in rates.items():
        best = max(found)
        print(f"| {name} | {best:,.0f} | {statistics.median(found):,.0f} | {best / slowest:.1f} |")


if __name__ == "__main__":
    main()
