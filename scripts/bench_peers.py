"""CartPole side by side: gpuzoo and other libraries in one run, on one machine, taking turns.

    python scripts/bench_peers.py [--num-envs 64 1024 16384] [--seconds 2] [--threads 1] [--device cpu] [--json]

Each contestant steps `num_envs` copies of CartPole-v1 with the same random actions, drawn once for 64 steps, resets
what is finished, and returns NumPy arrays (gymnax: JAX arrays, waited for). The ratio is gpuzoo's median rate over the
peer's. A peer that is not installed is skipped with a note. A new one is a function here: `num_envs, threads ->
(name, loop)`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gpuzoo.core.backend import make_backend
from gpuzoo.tools import provenance
from gpuzoo.tools.clocks import REPEATS, Clock, take_turns

ROUNDS = 64
Loop = Callable[[int], None]


def actions(num_envs: int, dtype: str = "int64") -> list[Any]:
    return list(np.random.default_rng(0).integers(0, 2, (ROUNDS, num_envs)).astype(dtype))


def stepper(env: Any, drawn: list[Any]) -> Loop:
    def loop(count: int) -> None:
        for k in range(count):
            env.step(drawn[k % ROUNDS])

    return loop


def version(distribution: str) -> str:
    return f"{distribution} {importlib.metadata.version(distribution)}"


def gymnasium_numpy(num_envs: int, threads: int | None) -> tuple[str, Loop]:
    import gymnasium

    env = gymnasium.make_vec("CartPole-v1", num_envs=num_envs, vectorization_mode="vector_entry_point")
    env.reset(seed=0)
    return f"{version('gymnasium')}, NumPy", stepper(env, actions(num_envs))


def gymnasium_sync(num_envs: int, threads: int | None) -> tuple[str, Loop]:
    import gymnasium

    if num_envs > 1024:
        raise LookupError("takes seconds per step at this size")
    env = gymnasium.make_vec("CartPole-v1", num_envs=num_envs, vectorization_mode="sync")
    env.reset(seed=0)
    return f"{version('gymnasium')}, one env after another", stepper(env, actions(num_envs))


def envpool(num_envs: int, threads: int | None) -> tuple[str, Loop]:
    import envpool

    env = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=num_envs, seed=0, num_threads=threads or 0)
    env.reset()
    return version("envpool"), stepper(env, actions(num_envs, "int32"))


def gymnax(num_envs: int, threads: int | None) -> tuple[str, Loop]:
    import gymnax
    import jax

    env, parameters = gymnax.make("CartPole-v1")
    keys = jax.random.split(jax.random.key(0), num_envs)
    _, state = jax.vmap(env.reset, (0, None))(keys, parameters)
    step = jax.jit(jax.vmap(env.step, (0, 0, 0, None)), donate_argnums=1)
    drawn = [jax.device_put(a) for a in actions(num_envs, "int32")]
    box = [state]

    def loop(count: int) -> None:
        for k in range(count):
            out = step(keys, box[0], drawn[k % ROUNDS], parameters)
            box[0] = out[1]
        jax.block_until_ready(out)

    return f"{version('gymnax')}, JAX on {jax.default_backend()}", loop


PEERS = (gymnasium_numpy, gymnasium_sync, envpool, gymnax)


def ours(num_envs: int, threads: int | None, device: str) -> tuple[str, Loop]:
    import gymnasium

    import gpuzoo

    env = gymnasium.make_vec("gpuzoo/CartPole-v1", num_envs=num_envs, device=device, threads=threads)
    env.reset(seed=0)
    return f"gpuzoo {gpuzoo.__version__}, NumPy", stepper(env, actions(num_envs))


def compare(num_envs: int, threads: int | None, device: str, seconds: float) -> list[dict[str, Any]]:
    loops = [ours(num_envs, threads, device)]
    rows = []
    for peer in PEERS:
        try:
            loops.append(peer(num_envs, threads))
        except ImportError as error:
            print(f"{peer.__name__}: skipped, it is not installed ({error})", file=sys.stderr)
        except LookupError as reason:
            print(f"{peer.__name__}: skipped, it {reason.args[0]}", file=sys.stderr)
    clocks = [Clock(loop, seconds / (REPEATS + 1)) for _, loop in loops]
    take_turns(clocks)
    for (name, _), clock in zip(loops, clocks, strict=True):
        rows.append(
            {
                "kind": "peer",
                "name": name,
                "num_envs": num_envs,
                "steps_per_second": num_envs / clock.seconds,
                "gpuzoo_is_faster_by": clock.seconds / clocks[0].seconds,
                "spread": clock.spread,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-envs", type=int, nargs="+", default=[64, 1024, 16384])
    parser.add_argument("--seconds", type=float, default=1.0, help="for each contestant at each size")
    parser.add_argument("--threads", type=int, help="CPU threads of those that have them; all by default")
    parser.add_argument("--device", default="cpu", help="of gpuzoo")
    parser.add_argument("--json", action="store_true", help="rows of JSON")
    chosen = parser.parse_args()
    machine = provenance.describe(make_backend(chosen.device, chosen.threads))
    if chosen.json:
        print(json.dumps(machine), flush=True)
    else:
        print(f"{machine['gpu'] or machine['cpu']}, {machine['cores']} cores, commit {machine['commit']}")
        print(f"{'':40} {'envs':>7} {'steps/s':>14} {'gpuzoo is faster by':>20}")
    for num_envs in chosen.num_envs:
        for row in compare(num_envs, chosen.threads, chosen.device, chosen.seconds):
            if chosen.json:
                print(json.dumps(row), flush=True)
            else:
                ratio = row["gpuzoo_is_faster_by"]
                print(f"{row['name']:40} {num_envs:7} {row['steps_per_second']:14,.0f} {ratio:20.2f}")


if __name__ == "__main__":
    main()
