"""The steps of a rollout as one plan, where a CPU can make all of them without Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gpuzoo.core.layout import flat_size

from .native import KINDS, Rows, acting, clear, copy, features
from .networks import FusedPolicy
from .plan import Plan, env_step
from .sampling import Sampling

if TYPE_CHECKING:
    from ..train.player import Player
    from ..train.rollout import Rollout


class Steps:
    """What `Plain.play` does from the first step to the end.

    Args:
        rollout: which it `serves`.
        sampling: the draws of each player.
    """

    def __init__(self, rollout: Rollout, sampling: Mapping[str, Sampling]) -> None:
        self._plan, self._sampling = Plan(), sampling
        self._networks = {name: FusedPolicy(player.policy) for name, player in rollout.players.items()}
        self._normalized: list[tuple[Player, Tensor]] = []
        self._not_mine = torch.empty(0) if rollout.mine is None else (~rollout.mine).flatten().nonzero().flatten()
        players = [(player, self._features(rollout, player)) for player in rollout.players.values()]
        for t, outputs in enumerate(rollout.outputs):
            for player, seen in players:
                self._act(rollout, player, seen, t)
            step = env_step(rollout.simulator, outputs)
            assert step is not None
            self._plan.add(step)
            self._keep(rollout, t)
        for player, seen in players:
            self._evaluate(rollout, player, seen, rollout.steps, torch.empty_like(sampling[player.name].out))

    @staticmethod
    def serves(rollout: Rollout) -> bool:
        """Whether a plan can have all of its steps: feed-forward networks that are fused, and no past selves."""
        if rollout.opponents is not None:
            return False
        if rollout.observation.dtype not in KINDS or env_step(rollout.simulator, rollout.outputs[0]) is None:
            return False
        if rollout.turn is not None and rollout.turn.dtype != torch.int32:
            return False
        return all(FusedPolicy.served(p.policy) for p in rollout.players.values())

    def _features(self, rollout: Rollout, player: Player) -> Tensor | None:
        """Where the features of a step go, or None if the networks read the observations in place."""
        observation = player.observations(rollout.observation[0])
        in_place = observation.data_ptr() == rollout.observation[0, :, player.agents[0]].data_ptr()
        if in_place and observation.dtype == torch.float32 and not player.policy.normalize:
            return None
        _, M, R = player.shape
        if player.policy.normalize:
            self._normalized.append((player, torch.empty_like(player.policy.scale.mean)))
        return torch.empty(M, R, flat_size(player.policy.observation_space))

    def _evaluate(self, rollout: Rollout, player: Player, seen: Tensor | None, t: int, out: Tensor) -> None:
        """What the networks say of the observations before step ``t``."""
        add, (_, M, R), policy = self._plan.add, player.shape, player.policy
        if seen is None:
            x = player.observations(rollout.observation[t]).reshape(M, R, -1)
        else:
            factors = [factor for who, factor in self._normalized if who is player]
            mean = policy.scale.mean if factors else None
            now = rollout.observation[t]
            places = [agent * now.shape[-1] for agent in player.agents]
            add(features(seen, Rows(now, places), mean, factors[0] if factors else None))
            x = seen
        for call in self._networks[player.name].bind(x, out, player.value[t]):
            add(call)

    def _act(self, rollout: Rollout, player: Player, seen: Tensor | None, t: int) -> None:
        sampling, add = self._sampling[player.name], self._plan.add
        self._evaluate(rollout, player, seen, t, sampling.out)
        if player.random is not None:
            add(clear(sampling.out, player.random))
        if rollout.mask is not None and sampling.mask is not None:
            size, masks = sampling.mask.shape[-1], rollout.mask[t]
            to = sampling.mask.view(len(masks), -1)
            places = [agent * masks.shape[-1] for agent in player.agents]
            add(copy(Rows(to, range(0, to.shape[1], size)), Rows(masks, places), size))
        add(sampling.calls[t], t)
        if player.chosen is not None:
            size, action = player.chosen.shape[-1], rollout.action[t]
            chosen = player.chosen.view(len(action), -1)
            places = [agent * action.shape[-1] for agent in player.agents]
            add(copy(Rows(action, places), Rows(chosen, range(0, chosen.shape[1], size)), size))

    def _keep(self, rollout: Rollout, t: int) -> None:
        """What a step leaves in the simulator's memory, where the next one overwrites it."""
        add, now, lay = self._plan.add, rollout.now, rollout.simulator.layout

        def all_of(x: Tensor) -> Rows:
            return Rows(x.view(1, -1))

        if rollout.copies_return:
            add(copy(all_of(rollout.final_return[t]), all_of(now["final_return"]), now["final_return"].numel()))
        if rollout.knows_final:
            size, when = now["final_observation"].numel(), rollout.truncated[t]
            add(copy(all_of(rollout.final_observation[t]), all_of(now["final_observation"]), size, when))
        if lay.agents > 1 or rollout.waits:
            mask, saved = (None, None) if rollout.mask is None else (now["action_mask"], rollout.mask[t + 1])
            add(acting(now["alive"], mask, rollout.turn, rollout.acting[t + 1], saved))
        if rollout.mine is not None:
            acts = rollout.acting[t + 1].view(1, -1, 1)
            add(clear(acts, self._not_mine))

    def run(self) -> None:
        """Plays all steps, and computes the values of the last observations."""
        for player, factor in self._normalized:
            factor.copy_(player.policy.scale.factor())
        self._plan.run()
