"""`observation_type="pettingzoo"` of chess, Go and Leduc hold'em against PettingZoo's envs.

Their rules are Pgx's, which differ (the games' pages say how), so games are compared until one of the two has ended.
"""

from __future__ import annotations

import itertools

import chess
import numpy as np
import pytest
import rlcard
from pettingzoo.classic import go_v5
from pettingzoo.classic.chess import chess as chess_v6
from pettingzoo.classic.chess import chess_utils

from gpuzoo import Simulator, get

pytestmark = [pytest.mark.rotates, pytest.mark.timeout(1800)]
REPETITIONS = np.arange(19, 111, 13)  # planes of PettingZoo's chess
GAMES = 60


def start(game: str, envs: int, seed: int, **config) -> Simulator:
    sim = Simulator(
        get(game), envs, device="cpu", threads=1, autoreset_mode="disabled", observation_type="pettingzoo", **config
    )
    sim.reset(seed=seed)
    return sim


def seen(sim: Simulator, env: int, agent: int) -> np.ndarray:
    shape = sim.layout.observation_spaces["player"].shape
    return np.asarray(sim.arrays["observation"][env, agent]).reshape(shape) != 0


def actions_of(env) -> dict[str, int]:
    """PettingZoo's action for each legal move."""
    player = env.possible_agents.index(env.agent_selection)
    legal = chess_utils.legal_moves(env.board)
    return {chess_utils.action_to_move(env.board, action, player).uci(): action for action in legal}


class Game:
    """A game of PettingZoo's, and which of its positions have come before by Pgx's rule, which is ours.

    A square that a pawn has just passed tells positions apart there. For python-chess it does so only where a pawn can
    capture on it.
    """

    def __init__(self) -> None:
        self.env = chess_v6.raw_env()
        self.env.reset()
        self.positions = [self._position()]
        self.repeated: list[bool] = []
        self.unlike: list[bool] = []

    def _position(self) -> tuple[object, ...]:
        board = self.env.board
        return board.board_fen(), board.turn, board.castling_rights, board.ep_square

    def step(self, uci: str) -> None:
        self.env.step(actions_of(self.env)[uci])
        position = self._position()
        self.repeated.append(position in self.positions)
        self.unlike.append(self.repeated[-1] != self.env.board.is_repetition(2))
        self.positions.append(position)

    def observation(self, agent: int) -> np.ndarray:
        found = self.env.observe(f"player_{agent}")["observation"].copy()
        for age in range(min(8, len(self.repeated))):
            if self.unlike[-1 - age]:
                found[:, :, REPETITIONS[age]] = self.repeated[-1 - age]
        return found


def test_chess():
    sim, moves, passed, repeated = start("Chess-v0", GAMES, 0), 0, 0, 0
    game, rng = get("Chess-v0"), np.random.default_rng(0)
    games = [Game() for _ in range(GAMES)]
    live = set(range(GAMES))
    while live:
        for k in live:
            for agent in range(2):
                theirs = games[k].observation(agent)
                np.testing.assert_array_equal(seen(sim, k, agent), theirs)
                repeated += int(theirs[0, 0, REPETITIONS].any())
            passed += games[k].env.board.ep_square is not None
        sim.random_actions()
        state = sim.state()
        for k in sorted(live):
            mover, stack = int(state["to_move"][k]), games[k].env.board.move_stack
            of = {name: array[k] for name, array in state.items()}
            if rng.random() < 0.3 and len(stack) >= 2:  # back to where the own last move began
                back = chess.Move(stack[-2].to_square, stack[-2].from_square).uci()
                ways = {game.move_name(sim.cfg, of, a): a for a in np.flatnonzero(sim.arrays["action_mask"][k, mover])}
                if back in ways:
                    sim.arrays["action"][k, mover, 0] = ways[back]
            games[k].step(game.move_name(sim.cfg, of, int(sim.arrays["action"][k, mover, 0])))
            moves += 1
        sim.step()
        live -= {k for k in live if sim.arrays["ended"][k] or any(games[k].env.terminations.values())}
    assert moves > 5_000
    assert passed > 200
    assert repeated > 200
    assert sum(sum(one.unlike) for one in games) < moves / 100


@pytest.mark.parametrize("size", [5, 9, 19])
def test_go(size):
    n = {5: 60, 9: 20, 19: 4}[size]
    sim, moves, rng = start("Go-v0", n, 0, size=size), 0, np.random.default_rng(1)
    for k in range(n):
        env = go_v5.raw_env(board_size=size)  # one after the other: the size is a global variable there
        env.reset()
        live = True
        while live:
            mover = int(sim.arrays["to_move"][k])
            for agent, name in enumerate(env.possible_agents):
                np.testing.assert_array_equal(seen(sim, k, agent), env.observe(name)["observation"])
            both = np.asarray(sim.arrays["action_mask"][k, mover]) & env.observe(env.agent_selection)["action_mask"]
            legal = np.flatnonzero(both)
            action = int(legal[-1] if rng.random() < 0.02 else rng.choice(legal))
            sim.arrays["action"][k, mover, 0] = action
            sim.step([k])
            env.step(action)
            moves += 1
            live = not (sim.arrays["ended"][k] or any(env.terminations.values()))
    assert moves > {5: 800, 9: 800, 19: 600}[size]


def test_leduc_holdem():
    env = rlcard.make("leduc-holdem")
    cards, chips = range(3), (1, 2, 3, 5, 7, 9, 11, 13)
    states = list(itertools.product(cards, cards, cards, chips, chips, range(2)))
    own, other, public, mine, others, shown = np.array(states).T
    sim = start("LeducHoldem-v0", len(states), 0)
    sim.set_state({"card": np.stack([own, other], 1), "public_card": public, "round": shown,
                   "chips": np.stack([mine, others], 1)})  # fmt: skip
    for k in range(len(states)):
        for agent, (hand, my_chips) in enumerate(((own[k], mine[k]), (other[k], others[k]))):
            told = {
                "hand": "S" + "JQK"[hand], "public_card": "H" + "JQK"[public[k]] if shown[k] else None,
                "my_chips": int(my_chips), "all_chips": [int(mine[k]), int(others[k])], "legal_actions": ["call"],
            }  # fmt: skip
            np.testing.assert_array_equal(sim.arrays["observation"][k, agent], env._extract_state(told)["obs"])
