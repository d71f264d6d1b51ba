"""`gpuzoo.jax` beside gymnax, in one run, taking turns: every game that gymnax has, and PureJaxRL's own ppo.py.

    python scripts/bench_jax.py [--num-envs 1024] [--steps 64] [--seconds 2] [--threads N] [--games CartPole-v1 ...]
    python scripts/bench_jax.py --purejaxrl FOLDER [--train-steps 200000] [--rounds 3]

The first scans steps of a mapped env with the same actions, drawn before. gymnax's steps get the same keys each time,
so that drawing keys is not counted. "At most" says how much faster the same scan would be if the call had no rules:
it only fills the observations with zeros, and final observations in the share of envs that end. The second runs
ppo.py of a clone of github.com/luchris429/purejaxrl, unchanged but for `gymnax.make`, and needs gymnax below version
1, for which it was written. Both print tables in Markdown.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import importlib.metadata
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
from gymnax.utils import load_mnist
from peers.gymnax import pictures

import gpuzoo
import gpuzoo.jax
from gpuzoo.core.backend import make_backend
from gpuzoo.core.backend_cpu import compile_host
from gpuzoo.tools import provenance
from gpuzoo.tools.clocks import REPEATS, Clock, take_turns

#: settings that PureJaxRL uses for each kind of game, beside those in ppo.py
RUNS: dict[str, dict[str, Any]] = {
    "CartPole-v1": {},
    "Breakout-MinAtar": {"LR": 5e-3, "NUM_ENVS": 64, "NUM_MINIBATCHES": 8, "ACTIVATION": "relu"},
}
PPO: dict[str, Any] = {
    "LR": 2.5e-4,
    "NUM_ENVS": 4,
    "NUM_STEPS": 128,
    "UPDATE_EPOCHS": 4,
    "NUM_MINIBATCHES": 4,
    "GAMMA": 0.99,
    "GAE_LAMBDA": 0.95,
    "CLIP_EPS": 0.2,
    "ENT_COEF": 0.01,
    "VF_COEF": 0.5,
    "MAX_GRAD_NORM": 0.5,
    "ACTIVATION": "tanh",
    "ANNEAL_LR": True,
}


def scanned(env: Any, params: Any, num_envs: int, actions: Any) -> Callable[[int], None]:
    """Steps of a mapped env, as many scans as asked for."""
    keys = jax.random.split(jax.random.key(0), num_envs)
    obs, state = jax.vmap(env.reset, (0, None))(keys, params)

    @functools.partial(jax.jit, donate_argnums=0)
    def scan(carry: Any) -> Any:
        def one(carry: Any, action: Any) -> Any:
            _, state, total = (
                carry  # a policy would see the observation, so it is carried: XLA leaves out what nobody has
            )
            out = jax.vmap(env.step, (0, 0, 0, None))(keys, state, action, params)
            return (out[0], out[1], total + out[2]), None

        return jax.lax.scan(one, carry, actions)[0]

    box = [(obs, state, jnp.zeros(num_envs))]

    def loop(count: int) -> None:
        for _ in range(count):
            box[0] = scan(box[0])
        jax.block_until_ready(box[0])

    return loop


IDLE = """
extern "C" void idle(const void *store, long long, long long num_envs, int) {
  const auto arrays = (void *const *)store;
  __builtin_memset(arrays[OBSERVATION], 0, num_envs * ROW);
  __builtin_memset(arrays[FINAL], 0, (long long)(SHARE * num_envs) * ROW);
}
"""


def without_rules(env: Any, loop: Callable[[int], None], share: float) -> Callable[[int], None]:
    """A loop of steps in which the kernel only fills observations, and final ones of a share of the envs."""
    program = env._program
    lay, store = program.layout, program._program.store
    row = lay.agents * lay.observation_size * np.dtype(lay.observation_dtype).itemsize
    places = {"OBSERVATION": store.index("observation"), "FINAL": store.index("final_observation")}
    flags = [f"-D{name}={value}" for name, value in {**places, "ROW": row, "SHARE": share}.items()]
    calls = ctypes.CDLL(str(compile_host(program._code(), f"{env.name}-jax", (f"-I{jax.ffi.include_dir()}",))))
    idle = ctypes.CDLL(str(compile_host(IDLE, "idle", tuple(flags)))).idle

    def loop_without_rules(count: int) -> None:
        calls.gz_bind_step(ctypes.cast(idle, ctypes.c_void_p))
        loop(count)
        calls.gz_bind_step(ctypes.c_void_p(program._kernels.address("step")))

    return loop_without_rules


def share_of_ends(name: str, num_envs: int) -> float:
    """How many envs end in a step, of those that play at random."""
    sim = gpuzoo.Simulator(gpuzoo.get(ours_of(name)), num_envs, device="cpu", autoreset_mode="same_step")
    sim.reset(seed=0)
    ends = 0
    for _ in range(400):
        sim.random_actions()
        sim.step()
        ends += int(sim.arrays["ended"].sum())
    return ends / (400 * num_envs)


def drawn(space: Any, steps: int, num_envs: int) -> Any:
    rng = np.random.default_rng(0)
    if hasattr(space, "n"):
        return jnp.asarray(rng.integers(0, space.n, (steps, num_envs)), jnp.int32)
    return jnp.asarray(rng.uniform(space.low, space.high, (steps, num_envs, *space.shape)), jnp.float32)


def ours_of(name: str) -> str:
    """The id here; gymnax has a name of its own for the game that Gymnasium has without it."""
    return gpuzoo.get("FrozenLake" if name == "FrozenLake-misc" else name).id


def games(chosen: argparse.Namespace) -> None:
    print("| game | gpuzoo.jax, M steps/s | gymnax, M steps/s | faster by | at most |\n|:--|--:|--:|--:|--:|")
    for name in chosen.games or gymnax.registered_envs:
        try:
            env, params = gpuzoo.jax.make(ours_of(name), threads=chosen.threads)
            theirs, their_params = gymnax.make(name)
            actions = drawn(next(iter(env.action_spaces.values())), chosen.steps, chosen.num_envs)
            loops = [
                scanned(env, params, chosen.num_envs, actions),
                scanned(theirs, their_params, chosen.num_envs, actions),
            ]
            loops.append(without_rules(env, loops[0], share_of_ends(name, chosen.num_envs)))
            clocks = [Clock(loop, chosen.seconds / (REPEATS + 1)) for loop in loops]
        except Exception as error:  # a peer that cannot be run says why, and the others go on
            print(f"{name}: left out: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        take_turns(clocks)
        rates = [chosen.num_envs * chosen.steps / clock.seconds / 1e6 for clock in clocks]
        faster = " | ".join(f"{rate / rates[1]:.1f}" for rate in (rates[0], rates[2]))
        print(f"| {name} | {rates[0]:.1f} | {rates[1]:.2f} | {faster} |", flush=True)


class Still:
    """An env that computes nothing, with the spaces of another: no env makes a trainer faster than this one does."""

    def __init__(self, env: Any) -> None:
        self._env, self._seen = env, jnp.zeros(env.observation_space(None).shape)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def reset(self, key: Any, params: Any) -> Any:
        return self._seen, jnp.float32(0)

    def step(self, key: Any, state: Any, action: Any, params: Any) -> Any:
        return self._seen + state, state, state, state > 0, {}


def still(name: str) -> Any:
    env, params = gpuzoo.jax.make(ours_of(name), merged_done=True)
    return Still(env), params


def purejaxrl(chosen: argparse.Namespace) -> None:
    sys.path.insert(0, chosen.purejaxrl)
    for name in ("brax", "brax.envs", "brax.envs.wrappers", "brax.envs.wrappers.training", "navix"):
        sys.modules[name] = types.ModuleType(name)  # PureJaxRL's wrappers.py imports them, and ppo.py does not use them
    sys.modules["brax"].envs = sys.modules["brax.envs"]  # type: ignore[attr-defined]
    training: Any = sys.modules["brax.envs.wrappers.training"]
    training.EpisodeWrapper = training.AutoResetWrapper = object
    import ppo

    makes = {
        "gpuzoo.jax": lambda name: gpuzoo.jax.make(ours_of(name), merged_done=True),
        f"gymnax {importlib.metadata.version('gymnax')}": gymnax.make,
        "no env": still,
    }
    key = jax.random.PRNGKey(30)
    print("| game | env | thousand steps/s | per CPU second | return, first tenth | last tenth |")
    print("|:--|:--|--:|--:|--:|--:|")
    for game, options in RUNS.items():
        config = {**PPO, **options, "ENV_NAME": game, "TOTAL_TIMESTEPS": chosen.train_steps}
        programs, results, times = {}, {}, {who: ([], []) for who in makes}
        for who, make in makes.items():
            ppo.gymnax = types.SimpleNamespace(make=make)
            programs[who] = jax.jit(ppo.make_train(dict(config))).lower(key).compile()
        for _ in range(chosen.rounds):
            for who, program in programs.items():
                start = time.perf_counter(), time.process_time()
                results[who] = jax.block_until_ready(program(key))["metrics"]
                times[who][0].append(time.perf_counter() - start[0])
                times[who][1].append(time.process_time() - start[1])
        for who, info in results.items():
            returns, over = np.asarray(info["returned_episode_returns"]), np.asarray(info["returned_episode"])
            tenth = len(returns) // 10
            ends = [returns[part][over[part]] for part in (slice(tenth), slice(-tenth, None))]
            first, last = (f"{found.mean():.1f}" if len(found) else "" for found in ends)
            rates = " | ".join(f"{returns.size / float(np.median(taken)) / 1e3:.1f}" for taken in times[who])
            print(f"| {game} | {who} | {rates} | {first} | {last} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-envs", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=64, help="of a scan")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each contestant and game")
    parser.add_argument("--threads", type=int, help="of a step of gpuzoo; all by default")
    parser.add_argument("--games", nargs="+", help="gymnax's names; all by default")
    parser.add_argument("--purejaxrl", help="the folder purejaxrl/ of a clone: train with its ppo.py")
    parser.add_argument("--train-steps", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3, help="training runs of each, of which the median counts")
    chosen = parser.parse_args()
    load_mnist.load_mnist = pictures
    machine = provenance.describe(make_backend("cpu"))
    print(f"{machine['cpu']}, {machine['cores']} cores, JAX {jax.__version__}, commit {machine['commit']}\n")
    (purejaxrl if chosen.purejaxrl else games)(chosen)


if __name__ == "__main__":
    main()
