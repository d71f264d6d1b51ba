"""gpuzoo. "step": a call for each step, with actions drawn before, or by the game's kernel if some are illegal;
"rollout": a call for many, which draws them.
"""

from __future__ import annotations

from . import DRAWN, About, Case, Game, Peer, Work

ABOUT = About("gpuzoo")
LARGEST = 2**27  # bytes of a batch


def peer(game: Game) -> Peer:
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
                if env.action_mask:
                    sim.random_actions()
                else:
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
