"""What one env of a running batch did: a snapshot, and the actions since then.

An env depends on nothing but its state and its actions, bit for bit and on any device. So this is enough to play its
episodes again, and a recorded batch copies one row of actions per step: on a GPU that is one small copy which nobody
waits for.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gpuzoo.core.simulator import Simulator
    from gpuzoo.core.snapshot import Snapshot

_CHUNK = 256  #: rows of actions that are kept on the device before they are brought to the host


@dataclasses.dataclass(frozen=True)
class Segment:
    """Steps of an env that nobody interfered with.

    Attributes:
        config: all parameters, with the env's own values.
        mode: Gymnasium's name of the autoreset mode.
        limit: time limit in steps, or None.
        snapshot: the env before the first step, in host memory.
        moves: int64 (n,): 0 is a step with the next row of ``actions``, k > 0 are k steps with random actions, as
            `Simulator.rollout` draws them.
        actions: (steps, agents, action_size).
    """

    config: dict[str, Any]
    mode: str
    limit: int | None
    snapshot: Snapshot
    moves: NDArray[np.int64]
    actions: NDArray[Any]

    def __len__(self) -> int:
        return int(np.maximum(self.moves, 1).sum())


class Recording:
    """Notes what an env of a batch does, from its next step on.

    It sees what goes through the `Simulator`. Steps that a captured CUDA graph repeats, and those of a pool, do not.

    Args:
        simulator: the batch.
        env: index of the env.

    Raises:
        IndexError: there is no such env.
        RuntimeError: the batch was not reset yet.
    """

    def __init__(self, simulator: Simulator, env: int) -> None:
        simulator.check_begun("record")
        if not 0 <= env < simulator.num_envs:
            raise IndexError(f"{simulator.env.id}: there is no env {env}, but envs 0 to {simulator.num_envs - 1}.")
        self._simulator: Simulator | None = simulator
        self.env, self.id, self.game = env, simulator.env.id, type(simulator.env)
        self._done: list[Segment] = []
        self._begun: dict[str, Any] | None = None  # what the present segment has in common with a `Segment`
        self._moves: list[int] = []
        self._rows: list[NDArray[Any]] = []
        action = simulator.arrays["action"]
        self._chunk = simulator.backend.zeros((_CHUNK, *action.shape[1:]), str(action.dtype))
        self._filled = 0
        simulator.recordings.append(self)

    def before_steps(self, simulator: Simulator, count: int = 0) -> None:
        """A step with the present actions comes, or ``count`` steps with random ones."""
        if self._begun is None:
            self._begun = {
                "config": vars(simulator.config(self.env)) | dict(simulator.drawn),
                "mode": simulator.autoreset_mode.value,
                "limit": simulator.max_episode_steps,
                "snapshot": simulator.snapshot(self.env).numpy(),
            }
        self._moves.append(count)
        if count == 0:
            with simulator.backend.ordered():
                self._chunk[self._filled] = simulator.arrays["action"][self.env]
            self._filled += 1
            if self._filled == _CHUNK:
                self._bring(simulator)

    def _bring(self, simulator: Simulator) -> None:
        if self._filled:
            self._rows.append(np.array(simulator.backend.to_numpy(self._chunk)[: self._filled]))
            self._filled = 0

    def interrupt(self) -> None:
        """Something else than a step changes the env: what follows begins with a snapshot of its own."""
        if self._begun is None or self._simulator is None:
            return
        self._bring(self._simulator)
        empty = np.zeros((0, *self._chunk.shape[1:]), str(self._chunk.dtype))
        actions = np.concatenate([empty, *self._rows])
        self._done.append(Segment(moves=np.array(self._moves, np.int64), actions=actions, **self._begun))
        self._begun, self._moves, self._rows = None, [], []

    def segments(self) -> list[Segment]:
        """What was noted so far. The recording goes on."""
        self.interrupt()
        return list(self._done)

    def stop(self) -> None:
        """Ends the recording; what was noted stays. May be called again."""
        if self._simulator is not None:
            self.interrupt()
            self._simulator.recordings.remove(self)
            self._simulator = None
