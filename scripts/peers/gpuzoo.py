"""gpuzoo. "step": a call for each step, with actions drawn before, or by the game's kernel if some are illegal;
"rollout": a call for many, which draws them.
"""

from __future__ import annotations

from . import DRAWN, About, Case, Game, Peer, Work

ABOUT = About("gpuzoo")
LARGEST = {"cpu": 2**27, "cuda": 2**32}  # bytes of a batch
CACHE = 2**22  # bytes; where 64 envs take more, there is more choice among small batches
BATCHES = {"cpu": (64, 512, 2048, 4096, 32768), "cuda": (4096, 32768, 262144, 2097152)}


def peer(game: Game) -> Peer:
    import gpuzoo
    from gpuzoo.core.simulator import Simulator

    env = gpuzoo.get(game["id"])
    config = dict(game["config"])
    if isinstance(config.get("name"), str):  # another library's id, where the game knows them
        config = type(env).config_of(config["name"])
    device = game["device"]
    options = {"device": device, "threads": game["threads"] if device == "cpu" else None} | config
    options |= {"autoreset_mode": "same_step"}
    largest, (fewest, *more) = LARGEST[device], BATCHES[device]

    def start(case: Case) -> Work:
        mode, batch = case
        sim = Simulator(env, batch, **options)
        sim.reset(seed=0)
        drawn = []
        for _ in range(DRAWN):
            sim.random_actions()
            drawn.append(sim.arrays["action"].copy())
            sim.step()

        def step() -> int:
            for actions in drawn:
                if env.action_mask:
                    sim.random_actions()
                else:
                    sim.arrays["action"][...] = actions
                sim.step()
            sim.synchronize()
            return DRAWN * batch

        def rollout() -> int:
            sim.rollout(DRAWN)
            sim.synchronize()
            return DRAWN * batch

        return step if mode == "step" else rollout

    few = Simulator(env, 64, **options)
    batches = [fewest, *(batch for batch in more if few.nbytes / 64 * batch < largest)]
    if device == "cpu" and few.nbytes > CACHE:
        batches = [game["threads"] * envs for envs in (1, 2, 4, 8, 64, 128)] + batches
    return [[mode, batch] for mode in ("step", "rollout") for batch in batches], start
