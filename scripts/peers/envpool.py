"""EnvPool. "sync": a call steps all envs; "async": half of the envs are received at a time."""

from __future__ import annotations

from . import DRAWN, About, Case, Game, Peer, Work

ABOUT = About("EnvPool")


def peer(game: Game) -> Peer:
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
