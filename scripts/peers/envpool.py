"""EnvPool. "sync": a call steps all envs; "async": half of the envs are received at a time.

Where it gives masks of legal actions its actions are legal, and only its own calls count, not how they are drawn.
"""

from __future__ import annotations

from typing import Any

from . import CLOCKS, DRAWN, About, Case, Game, Peer, Work

ABOUT = About("EnvPool")


def legal(mask: Any, space: Any, random: Any) -> Any:
    """Random legal actions by masks (envs, ...) of all combinations of an action's parts, or of each part's choices."""
    import numpy as np

    ends = mask.shape[1:]
    whole = space.shape == () or ends == tuple(space.high.astype(int) + 1)
    rows = mask.reshape(len(mask), 1, -1) if whole else mask
    chosen = np.where(rows, random.random(rows.shape, np.float32), -1).argmax(-1)
    if not whole:
        return chosen.astype(np.int32)
    parts = np.unravel_index(chosen[:, 0], ends)
    return (np.stack(parts, 1) if space.shape else parts[0]).astype(np.int32)


def masks(seen: Any, about: dict[str, Any]) -> Any:
    """The masks of legal actions, where a game has them: among its observations or beside them."""
    return seen.get("action_mask") if isinstance(seen, dict) else about.get("legal_action_mask")


def peer(game: Game) -> Peer:
    import envpool
    import numpy as np

    clock, random = CLOCKS[game["clock"]], np.random.default_rng(0)

    def start(case: Case) -> Work:
        mode, envs = case
        batch = envs if mode == "sync" else envs // 2
        env = envpool.make_gymnasium(
            game["id"], num_envs=envs, batch_size=batch, num_threads=game["threads"], seed=0, **game["config"]
        )
        drawn = [np.array([env.action_space.sample() for _ in range(batch)]) for _ in range(DRAWN)]
        if env.action_space.dtype.kind == "i":
            drawn = [actions.astype(np.int32) for actions in drawn]
        mask: Any = None
        if mode == "sync":
            mask = masks(*env.reset())
        else:
            env.async_reset()

        def work() -> tuple[int, float]:
            nonlocal mask
            left_out = 0.0
            for actions in drawn:
                ids = None
                if mode == "async":
                    seen, *_, about = env.recv()
                    mask, ids = masks(seen, about), about["env_id"]
                begun = clock()
                if mask is not None:
                    actions = legal(mask, env.action_space, random)
                left_out += clock() - begun
                if mode == "sync":
                    seen, *_, about = env.step(actions)
                    mask = masks(seen, about)
                else:
                    env.send(actions, ids)
            return DRAWN * batch, left_out

        return work

    return [[mode, envs] for mode in ("sync", "async") for envs in (64, 512, 2048, 4096)], start
