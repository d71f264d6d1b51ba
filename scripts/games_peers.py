"""Games of gpuzoo and of other libraries, stepped with random actions: ``bench_games.py`` runs this elsewhere.

    PYTHON scripts/games_peers.py LIBRARY < COMMANDS

PYTHON is an interpreter with that library. The first line is a game: `{"id": ..., "config": {...}, "threads": 2}`. The
answer says which cases there are and how many of these processes it takes to fill the cores. A case has the batch size
as its last entry. Each further line is `[case, seconds]`, the answer env steps per second. Unasked, it sleeps.

A library is a function here: it takes the game and returns the cases and `start(case)`, which makes a batch and returns
a function that makes some steps of it and says how many env steps they were. Finished episodes start anew within them.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

Work = Callable[[], int]
Case = list[Any]
DRAWN = 16  # random actions are drawn before, for so many steps, unless the library draws them in its own loop
LARGEST = 2**27  # bytes of a batch of ours
SHORTEST = 0.05  # seconds of a measurement


def gpuzoo(game: dict[str, Any]) -> tuple[list[Case], Callable[[Case], Work]]:
    """ "step": a call for each step, with actions drawn before; "rollout": many steps in one call, which draws them."""
    import gpuzoo
    from gpuzoo.core.simulator import Simulator

    env = gpuzoo.get(game["id"])
    config = dict(game["config"])
    if isinstance(config.get("name"), str):  # another library's id, where the game knows them
        config = type(env).config_of(config["name"])

    def start(case: Case) -> Work:
        mode, batch = case
        sim = Simulator(env, batch, device="cpu", threads=game["threads"], autoreset_mode="same_step", **config)
        sim.reset(seed=0)
        drawn = []
        for _ in range(DRAWN):
            sim.random_actions()
            drawn.append(sim.arrays["action"].copy())
            sim.step()

        def step() -> int:
            for actions in drawn:
                sim.arrays["action"][...] = actions
                sim.step()
            return DRAWN * batch

        def rollout() -> int:
            sim.rollout(DRAWN)
            return DRAWN * batch

        return step if mode == "step" else rollout

    few = Simulator(env, 64, device="cpu", autoreset_mode="same_step", **config)
    batches = [batch for batch in (64, 512, 4096, 32768) if batch == 64 or few.nbytes / 64 * batch < LARGEST]
    if few.nbytes > LARGEST / 4:  # so large that a batch had better fit into the cache
        batches = [2, 8, *batches]
    return [[mode, batch] for mode in ("step", "rollout") for batch in batches], start


def _scan(step: Callable[..., Any], reset: Callable[..., Any]) -> Callable[[Case], Work]:
    """Steps of a batch under `lax.scan`; with two devices each has half of the batch. All that a step gives is kept, so
    that XLA computes it."""
    import jax

    def start(case: Case) -> Work:
        _, devices, batch = case
        part = batch // devices

        def begin(key: Any) -> Any:
            keys = jax.random.split(key, part)
            _, state = jax.vmap(reset)(keys)
            out, after = jax.eval_shape(jax.vmap(step), keys, state)
            # of the types that a step gives, strong ones, or else the second call compiles anew
            key_type = jax.dtypes.prng_key
            is_key = jax.tree.map(lambda x: jax.dtypes.issubdtype(x.dtype, key_type), state)
            state = jax.tree.map(lambda x, y, k: x if k else x.astype(y.dtype), state, after, is_key)
            return jax.tree.map(lambda x: jax.numpy.zeros(x.shape, x.dtype), out), state

        def one(carry: Any, key: Any) -> Any:
            out, state = jax.vmap(step)(jax.random.split(key, part), carry[1])
            return (out, state), None

        def run(key: Any, carry: Any) -> Any:
            keys = jax.random.split(key, DRAWN + 1)
            return keys[0], jax.lax.scan(one, carry, keys[1:])[0]

        many = jax.pmap if devices > 1 else jax.jit
        key = jax.random.split(jax.random.key(0), devices) if devices > 1 else jax.random.key(0)
        box = [key, many(begin)(key)]
        compiled = many(run)

        def work() -> int:
            box[:] = compiled(*box)
            jax.block_until_ready(box[1])
            return DRAWN * batch

        return work

    return start


def _scan_cases(game: dict[str, Any]) -> list[Case]:
    """Batches of a compiled loop, not larger than a game that takes much time or memory says."""
    threads, most = game["threads"], game.get("most_envs", 8192)
    cases: list[Case] = [["scan", 1, envs] for envs in sorted({min(1024, most), most})]
    return [*cases, ["scan", threads, most]] if threads > 1 else cases


def pictures() -> Any:
    """As many pictures as gpuzoo draws, in place of MNIST, which gymnax would download."""
    import numpy as np

    rng, n = np.random.default_rng(0), 500
    pictures = rng.integers(-128, 128, (n, 28, 28), np.int8), rng.integers(0, 10, n, np.uint8)
    return pictures, pictures


def gymnax(game: dict[str, Any]) -> tuple[list[Case], Callable[[Case], Work]]:
    import gymnax
    import jax
    from gymnax.utils import load_mnist

    load_mnist.load_mnist = pictures
    env, parameters = gymnax.make(game["id"], **game["config"])

    def step(key: Any, state: Any) -> Any:
        for_action, for_step = jax.random.split(key)
        action = env.action_space(parameters).sample(for_action)
        observation, state, *rest = env.step(for_step, state, action, parameters)
        return (observation, *rest), state

    return _scan_cases(game), _scan(step, lambda key: env.reset(key, parameters))


def jaxmarl(game: dict[str, Any]) -> tuple[list[Case], Callable[[Case], Work]]:
    """Legal moves at random, where it says which are."""
    import jax
    import jaxmarl
    from jaxmarl.environments.smax import map_name_to_scenario

    config = dict(game["config"])
    if "scenario" in config:  # of SMAX, by its name
        config["scenario"] = map_name_to_scenario(config["scenario"])
    env = jaxmarl.make(game["id"], **config)

    def step(key: Any, state: Any) -> Any:
        *for_actions, for_step = jax.random.split(key, len(env.agents) + 1)
        if hasattr(env, "get_legal_moves"):
            legal = env.get_legal_moves(state)
            draw = lambda a, k: jax.random.categorical(k, jax.numpy.log(legal[a]))  # noqa: E731
        else:
            draw = lambda a, k: env.action_space(a).sample(k)  # noqa: E731
        actions = {a: draw(a, k) for a, k in zip(env.agents, for_actions, strict=True)}
        observations, state, *rest = env.step(for_step, state, actions)
        return (observations, *rest), state

    return _scan_cases(game), _scan(step, env.reset)


def pgx(game: dict[str, Any]) -> tuple[list[Case], Callable[[Case], Work]]:
    """Legal moves at random."""
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental import auto_reset

    env = pgx.make(game["id"])
    go_on = auto_reset(env.step, env.init)

    def reset(key: Any) -> Any:
        state = env.init(key)
        return state.observation, state

    def step(key: Any, state: Any) -> Any:
        for_action, for_step = jax.random.split(key)
        action = jax.random.categorical(for_action, jnp.where(state.legal_action_mask, 0.0, -jnp.inf))
        state = go_on(state, action, for_step)
        return state.observation, state

    return _scan_cases(game), _scan(step, reset)


def vmas(game: dict[str, Any]) -> tuple[list[Case], Callable[[Case], Work]]:
    """Its envs of one batch end together, after 25 steps, and are reset together."""
    import torch
    import vmas

    torch.set_num_threads(game["threads"])
    limit = 25

    def start(case: Case) -> Work:
        env = vmas.make_env(
            game["id"], num_envs=case[-1], device="cpu", continuous_actions=False, max_steps=limit, seed=0,
            **game["config"],
        )  # fmt: skip
        sizes = [env.get_agent_action_size(agent) for agent in env.agents]
        choices = [space.n if hasattr(space, "n") else 5 for space in env.action_space]
        drawn = [[torch.randint(n, (case[-1], k)) for n, k in zip(choices, sizes, strict=True)] for _ in range(limit)]

        def work() -> int:
            for actions in drawn:
                env.step(actions)
            env.reset()
            return limit * case[-1]

        return work

    return [["step", batch] for batch in (1024, 8192, 32768)], start


def envpool(game: dict[str, Any]) -> tuple[list[Case], Callable[[Case], Work]]:
    """ "async": half of the envs are received at a time."""
    import envpool
    import numpy as np

    def start(case: Case) -> Work:
        mode, envs = case
        batch = envs if mode == "sync" else envs // 2
        env = envpool.make_gymnasium(
            game["id"], num_envs=envs, batch_size=batch, num_threads=game["threads"], seed=0, **game["config"]
        )
        drawn = [np.array([env.action_space.sample() for _ in range(batch)]) for _ in range(DRAWN)]
        if env.action_space.dtype.kind == "i":
            drawn = [actions.astype(np.int32) for actions in drawn]
        if mode == "sync":
            env.reset()
        else:
            env.async_reset()

        def work() -> int:
            for actions in drawn:
                if mode == "sync":
                    env.step(actions)
                else:
                    env.send(actions, env.recv()[4]["env_id"])
            return DRAWN * batch

        return work

    return [[mode, envs] for mode in ("sync", "async") for envs in (64, 512, 4096)], start


def pufferlib(game: dict[str, Any]) -> tuple[list[Case], Callable[[Case], Work]]:
    """The id is a module and its class."""
    import numpy as np

    sys.setdlopenflags(os.RTLD_LAZY)  # what is drawn with need not be there
    module, name = game["id"].split(":")
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # it leaves a link where it is imported
        kind = getattr(importlib.import_module(f"pufferlib.ocean.{module}"), name)
        os.chdir(here)

    def start(case: Case) -> Work:
        env = kind(num_envs=case[-1], render_mode=None, **game["config"])
        env.reset(0)
        rng = np.random.default_rng(0)
        space, agents = env.single_action_space, env.num_agents
        drawn = [rng.integers(0, space.n, agents).astype(env.actions.dtype) for _ in range(DRAWN)]

        def work() -> int:
            for actions in drawn:
                env.step(actions)
            return DRAWN * case[-1]

        return work

    return [["step", batch] for batch in (64, 512, 4096)], start


def gymnasium_env(game: dict[str, Any]) -> tuple[list[Case], Callable[[Case], Work]]:
    """A Python env of Gymnasium's interface, one by one; the module that registers it stands before the id."""
    import gymnasium

    module, _, name = game["id"].rpartition(":")
    if module:
        importlib.import_module(module)

    def start(case: Case) -> Work:
        env = gymnasium.make(name, disable_env_checker=True, **game["config"]).unwrapped
        env.reset(seed=0)
        limit, taken = gymnasium.spec(name).max_episode_steps or 10**9, [0]
        drawn = [env.action_space.sample() for _ in range(1000)]

        def work() -> int:
            for _ in range(DRAWN):
                taken[0] += 1
                _, _, terminated, truncated, _ = env.step(drawn[taken[0] % 1000])
                if terminated or truncated or taken[0] % limit == 0:
                    env.reset()
            return DRAWN

        return work

    return [["step", 1]], start


def pettingzoo(game: dict[str, Any]) -> tuple[list[Case], Callable[[Case], Work]]:
    """A Python env of PettingZoo's parallel interface, one by one; the id is the module with `parallel_env`."""
    parallel_env = importlib.import_module(game["id"]).parallel_env

    def start(case: Case) -> Work:
        env = parallel_env(**game["config"])
        env.reset(seed=0)
        agents = env.possible_agents
        drawn = [{agent: env.action_space(agent).sample() for agent in agents} for _ in range(100)]

        def work() -> int:
            for actions in drawn[:DRAWN]:
                env.step({agent: actions[agent] for agent in env.agents})
                if not env.agents:
                    env.reset()
            return DRAWN

        return work

    return [["step", 1]], start


def magent2(game: dict[str, Any]) -> tuple[list[Case], Callable[[Case], Work]]:
    """MAgent2's engine in C++, without its PettingZoo interface in Python; the id is a module of its environments."""
    import numpy as np

    made = importlib.import_module(f"magent2.environments.{game['id']}").parallel_env(**game["config"])

    def start(case: Case) -> Work:
        engine, handles, taken = made.env, made.handles, [0]
        rng = np.random.default_rng(0)
        most = [engine.get_num(handle) for handle in handles]
        actions = [engine.get_action_space(handle)[0] for handle in handles]
        drawn = [[rng.integers(0, a, n, np.int32) for a, n in zip(actions, most)] for _ in range(DRAWN)]  # noqa: B905

        def work() -> int:
            for chosen in drawn:
                for handle, values in zip(handles, chosen):  # noqa: B905
                    engine.set_action(handle, values[: engine.get_num(handle)])
                over = engine.step()
                for handle in handles:
                    engine.get_observation(handle)
                    engine.get_reward(handle)
                    engine.get_alive(handle)
                engine.clear_dead()
                taken[0] += 1
                if over or taken[0] % made.max_cycles == 0:
                    engine.reset()
                    made.generate_map()
            return DRAWN

        return work

    return [["step", 1]], start


def overcooked_ai(game: dict[str, Any]) -> tuple[list[Case], Callable[[Case], Work]]:
    """Steps of a layout with the encoding that is learned from, one kitchen; a new one every 400 steps."""
    import random

    from overcooked_ai_py.mdp.actions import Action
    from overcooked_ai_py.mdp.overcooked_mdp import OvercookedGridworld

    def start(case: Case) -> Work:
        mdp = OvercookedGridworld.from_layout_name(game["id"], **game["config"])
        box = [mdp.get_standard_start_state()]
        drawn = [random.choices(Action.ALL_ACTIONS, k=mdp.num_players) for _ in range(1000)]

        def work() -> int:
            for _ in range(DRAWN):
                state, _ = mdp.get_state_transition(box[0], drawn[box[0].timestep])
                mdp.lossless_state_encoding(state)
                box[0] = state if state.timestep < 400 else mdp.get_standard_start_state()
            return DRAWN

        return work

    return [["step", 1]], start


def hanabi(game: dict[str, Any]) -> tuple[list[Case], Callable[[Case], Work]]:
    """hanabi-learning-environment with all that its interface for learning gives, and legal moves at random."""
    import random

    from hanabi_learning_environment import rl_env

    def start(case: Case) -> Work:
        env = rl_env.make(game["id"], **game["config"])
        box = [env.reset()]

        def work() -> int:
            for _ in range(DRAWN):
                shown = box[0]
                legal = shown["player_observations"][shown["current_player"]]["legal_moves_as_int"]
                box[0], _, done, _ = env.step(random.choice(legal))
                if done:
                    box[0] = env.reset()
            return DRAWN

        return work

    return [["step", 1]], start


LIBRARIES = {
    "gpuzoo": gpuzoo,
    "jaxmarl": jaxmarl,
    "gymnax": gymnax,
    "pgx": pgx,
    "vmas": vmas,
    "envpool": envpool,
    "pufferlib": pufferlib,
    "gymnasium": gymnasium_env,
    "pettingzoo": pettingzoo,
    "magent2": magent2,
    "overcooked_ai": overcooked_ai,
    "hanabi": hanabi,
}
#: these use one core
ALONE = ("pufferlib", "gymnasium", "pettingzoo", "magent2", "overcooked_ai", "hanabi")


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def rate(work: Work, seconds: float, clock: Callable[[], float]) -> float:
    done, start = 0, clock()
    while clock() < start + max(seconds, SHORTEST):
        done += work()
    return done / (clock() - start)


def main() -> None:
    import warnings

    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print
    library, game = sys.argv[1], json.loads(sys.stdin.readline())
    cases, start = LIBRARIES[library](game)
    print(json.dumps([cases, game["threads"] if library in ALONE else 1]), file=answers, flush=True)
    started: dict[str, Work] = {}
    for line in sys.stdin:
        case, seconds = json.loads(line)
        name = json.dumps(case)
        if name not in started:
            started[name] = start(case)
            started[name]()
        print(rate(started[name], seconds, CLOCKS[game["clock"]]), file=answers, flush=True)


if __name__ == "__main__":
    main()
