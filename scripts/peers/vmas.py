"""VMAS. Its envs of one batch end together, after 25 steps, and are reset together."""

from __future__ import annotations

from . import About, Case, Game, Peer, Work

ABOUT = About("VMAS")


def peer(game: Game) -> Peer:
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
