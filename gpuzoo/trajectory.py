"""Trajectories: what an env of a running batch did, to be saved, played again and filmed."""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo import registry
from gpuzoo.core.definition import EnvDef
from gpuzoo.core.files import replacing
from gpuzoo.core.recording import Recording, Segment
from gpuzoo.core.simulator import Simulator
from gpuzoo.core.snapshot import Snapshot
from gpuzoo.core.uniform import Uniform
from gpuzoo.interfaces.batch import draw
from gpuzoo.render import save_animation

_FORMAT = 1
#: what `Trajectory.arrays` tells of each step
_TOLD = ("observation", "reward", "terminated", "truncated", "action_mask")


class Trajectory:
    """The recorded steps of an env. It can be played again on the CPU, with the same bits.

    Attributes:
        game: the declaration.
        id: its id.
        segments: its parts. Within a segment nobody changed the env from outside.
    """

    def __init__(self, game: type[EnvDef], segments: list[Segment]) -> None:
        self.game, self.segments = game, segments
        self.id = game.id

    def __len__(self) -> int:
        """Number of steps."""
        return sum(len(segment) for segment in self.segments)

    def __repr__(self) -> str:
        return f"Trajectory({self.id}, {len(self)} steps)"

    def play(self) -> Iterator[Simulator]:
        """Plays the trajectory.

        Yields a simulator with one env before the first step of each segment, and after each step. Its arrays have the
        recorded values. The next step overwrites them.

        Raises:
            ValueError: the game has changed since the recording.
        """
        for segment in self.segments:
            simulator = Simulator(
                self.game, 1, device="cpu", threads=1, autoreset_mode=segment.mode,
                max_episode_steps=segment.limit, **segment.config,
            )  # fmt: skip
            try:
                simulator.restore(segment.snapshot)
                yield simulator
                row = 0
                for move in segment.moves.tolist():
                    for _ in range(move):
                        simulator.random_actions()
                        simulator.step()
                        yield simulator
                    if not move:
                        simulator.arrays["action"][0] = segment.actions[row]
                        row += 1
                        simulator.step()
                        yield simulator
            finally:
                simulator.close()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Observations, actions, rewards and flags of all steps.

        Returns:
            ``action`` (steps, agents, action_size), ``reward``, ``terminated``, ``truncated`` (steps, agents), and
            ``observation`` (steps, agents, size), the observations after each step; ``action_mask`` if the game has
            masks. ``before``, (steps, agents, size), holds the observations before each step.
        """
        out: dict[str, list[NDArray[Any]]] = {}
        before: NDArray[Any] | None = None
        last: Simulator | None = None
        for simulator in self.play():
            first, last = simulator is not last, simulator
            if not first:
                for name in ("action", *(name for name in _TOLD if name in simulator.arrays)):
                    out.setdefault(name, []).append(np.array(simulator.arrays[name][0]))
                assert before is not None
                out.setdefault("before", []).append(before)
            before = np.array(simulator.arrays["observation"][0])
        return {name: np.stack(rows) for name, rows in out.items()}

    def frames(self, size: int = 480, aspect: float | None = None, every: int = 1) -> Iterator[NDArray[np.uint8]]:
        """Pictures (height, width, 3) uint8 of the first state and after each step, or every ``every``-th."""
        for k, simulator in enumerate(self.play()):
            if k % every == 0:
                yield draw(simulator, 0, size, aspect)

    def film(
        self, path: str | os.PathLike[str], fps: float | None = None, size: int = 480, aspect: float | None = None
    ) -> None:
        """Writes a .gif, .png (animated), .mp4, .webm, or a page .html with a player; see `render.save_animation`.

        Args:
            path: the file.
            fps: frames per second; by default the game's own rate, up to 50.
            size: pixels of the longer side.
            aspect: width by height; the game's own by default.

        Raises:
            ValueError, ImportError: as `render.save_animation`.
            NotImplementedError: the game does not draw itself.
        """
        save_animation(self.frames(size, aspect), path, fps or min(self.game.render_fps, 50), title=self.id)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an .npz file of numbers and JSON, without code. The file appears complete or not at all."""
        arrays: dict[str, NDArray[Any]] = {}
        parts = []
        for k, segment in enumerate(self.segments):
            arrays |= {f"{k}/moves": segment.moves, f"{k}/actions": segment.actions}
            arrays |= {f"{k}/snapshot/{name}": array for name, array in segment.snapshot.arrays.items()}
            config = {n: dataclasses.asdict(v) if isinstance(v, Uniform) else v for n, v in segment.config.items()}
            parts.append({"config": config, "mode": segment.mode, "limit": segment.limit})
        about = {"format": _FORMAT, "id": self.id, "segments": parts}
        with replacing(Path(path)) as file:
            np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | os.PathLike[str], game: EnvDef | type[EnvDef] | None = None) -> Trajectory:
        """Reads a file that `save` wrote.

        Args:
            path: the file.
            game: the declaration, if the game is not registered.

        Raises:
            ValueError: the file has another format, or there is no such game.
            OSError: it cannot be read.
        """
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as found:
                about = json.loads(str(found["about"]))
                arrays = {name: found[name] for name in found.files}
            if about["format"] != _FORMAT:
                raise ValueError
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile):
            raise ValueError(f"{path} holds no trajectory that this version of gpuzoo can read.") from None
        env = registry.get(about["id"] if game is None else game)
        segments = []
        for k, part in enumerate(about["segments"]):
            config = {n: Uniform(**v) if isinstance(v, dict) else v for n, v in part["config"].items()}
            own = f"{k}/snapshot/"
            state = {name.removeprefix(own): array for name, array in arrays.items() if name.startswith(own)}
            kept = {name: value for name, value in config.items() if f"param_{name}" not in state}
            segments.append(
                Segment(
                    config, part["mode"], part["limit"], Snapshot(env.id, kept, state),
                    arrays[f"{k}/moves"], arrays[f"{k}/actions"],
                )
            )  # fmt: skip
        return cls(type(env), segments)


class Recorder(Recording):
    """A recording in progress. Leaving its ``with`` block ends it."""

    def trajectory(self) -> Trajectory:
        """The steps recorded so far. The recording goes on until `stop`."""
        return Trajectory(self.game, self.segments())

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def record(envs: Any, env: int = 0) -> Recorder:
    """Records one env of a running batch, from now on.

    A step of the batch costs one more copy, of that env's actions. Everything else is computed when the trajectory is
    played.

    ``with gpuzoo.record(envs, env=7) as recording: ...`` and then ``recording.trajectory().film("seven.gif")``.

    Args:
        envs: a `BatchEnv`, `VectorEnv`, single or PettingZoo env of gpuzoo, its wrappers included, or a `Simulator`.
        env: index of the env. (In a `VectorEnv` envs are counted, not rows.)

    Raises:
        TypeError: ``envs`` are not envs of gpuzoo, or are a pool, which steps only some envs at a time.
        IndexError: there is no such env.
        RuntimeError: the envs were not reset yet.
    """
    simulator = envs if isinstance(envs, Simulator) else getattr(getattr(envs, "unwrapped", envs), "simulator", None)
    if not isinstance(simulator, Simulator) or hasattr(envs, "send"):
        raise TypeError(f"record takes envs of gpuzoo that step together, not {type(envs).__name__}.")
    return Recorder(simulator, env)
