"""What a program is asked: a position, how it came about, and which moves are legal."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gpuzoo.core.definition import EnvDef


@dataclasses.dataclass(frozen=True)
class Position:
    """A position of a game.

    Attributes:
        env, cfg: the game.
        state: fields of the env.
        legal: actions.
        history: names of all moves so far, see `name`.
        game: tells games apart that are played at the same time.
    """

    env: EnvDef
    cfg: Any
    state: Mapping[str, Any]
    legal: Sequence[int]
    history: Sequence[str] = ()
    game: int = 0

    def name(self, action: int) -> str:
        """A legal move in the notation of programs: the game's ``move_name``."""
        named: Any = self.env
        return str(named.move_name(self.cfg, self.state, action))

    def action(self, name: str) -> int:
        """The legal action with a name.

        Raises:
            RuntimeError: there is none.
        """
        for action in self.legal:
            if self.name(action).lower() == name.lower():
                return action
        raise RuntimeError(f"the program moves {name}, which is not legal after {' '.join(self.history) or 'no move'}.")


class Engine(Protocol):
    """A program that plays."""

    def choose(self, position: Position) -> int | None:
        """An action; None: the program resigns."""

    def close(self) -> None:
        """Ends the program."""
