"""How often AlphaZero chooses a best move in Connect Four, by an exact solver.

    python -m baselines.alphazero ConnectFour-v0 --minutes 60 --out out/four
    python scripts/connect_four_moves.py out/four/network.safetensors [--simulations 400]

Positions come from games of UCT with few playouts against itself, and from random play. In each of them the solver
knows of every move whether it wins, draws or loses; a best move is one with the best of these. In some positions all
moves are worth the same, so the share among the others is said, too.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from alphazero_players import parser, players

from baselines.report.searchers import Player, interval, random_player, searcher
from gpuzoo import Simulator, get
from gpuzoo.core.backend_cpu import compile_host

GAME = "ConnectFour-v0"
SOLVER = Path(__file__).with_name("connect_four_solver.cpp")
FEWEST, MOST = 16, 34  # discs in a position


def values_of_moves(discs_0: NDArray[np.uint64], discs_1: NDArray[np.uint64]) -> NDArray[np.int8]:
    """Of positions that are not over, (positions, 7): 1, 0 or -1 for a move that wins, draws or loses, -2 for none.

    Args:
        discs_0: of the player to move, as in the fields of ConnectFour.
        discs_1: of the other one.
    """
    own, taken = upright(discs_0), upright(discs_0 | discs_1)
    solve = ctypes.CDLL(str(compile_host(SOLVER.read_text(), "the solver"))).solve
    values = np.zeros((len(own), 7), np.int8)
    solve(ctypes.c_int64(len(own)), *(ctypes.c_void_p(array.ctypes.data) for array in (own, taken, values)))
    return values


def upright(discs: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The same discs in the solver's numbers: columns of seven bits, from the bottom."""
    out = np.zeros_like(discs)
    for row in range(6):
        for column in range(7):
            out |= (discs >> np.uint64(7 * row + column) & np.uint64(1)) << np.uint64(7 * column + 5 - row)
    return out


def positions(player: Player, count: int, seed: int) -> Simulator:
    """Positions of a player's games against itself after 16 to 34 moves."""
    found: list[dict[str, NDArray[np.generic]]] = []
    envs = Simulator(get(GAME), count, device="cpu", threads=1, autoreset_mode="disabled")
    rng = np.random.default_rng(seed)
    while sum(len(part["to_move"]) for part in found) < count:
        envs.reset(seed=int(rng.integers(2**31)))
        envs.rollout(4)
        stop = rng.integers(FEWEST, MOST + 1, count)
        for k in range(4, MOST + 1):
            goes_on = ~(envs.arrays["ended"] | envs.arrays["waiting"])
            here = np.flatnonzero((stop == k) & goes_on)
            found.append({name: envs.arrays[name][here].copy() for name in envs.program.fields})
            if k < MOST:
                envs.arrays["action"][...] = player(envs).numpy().reshape(-1, 1, 1)
                envs.step()
    envs.close()
    out = Simulator(get(GAME), count, device="cpu", threads=1, autoreset_mode="disabled")
    out.reset(seed=0)
    out.set_state({name: np.concatenate([part[name] for part in found])[:count] for name in found[0]})
    return out


def solved(state: dict[str, NDArray[np.generic]]) -> NDArray[np.int8]:
    """`values_of_moves` of some envs' fields."""
    first = state["to_move"] == 0
    own, other = (np.where(first == (k == 0), state["discs_0"], state["discs_1"]) for k in range(2))
    return values_of_moves(own.astype(np.uint64), other.astype(np.uint64))


def best_moves(envs: Simulator, values: NDArray[np.int8], player: Player) -> NDArray[np.bool_]:
    """In which positions a player chooses a best move."""
    chosen = values[np.arange(len(values)), player(envs).numpy()]
    return np.asarray(chosen == values.max(1))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--positions", type=int, default=500, help="of each kind")
    given = options.parse_args()
    _, contestants, uct = players(given)
    sources = {"UCT with 100 playouts": searcher("uct", 100, None, 1), "random play": random_player}
    for source, plays in sources.items():
        envs = positions(plays, given.positions, given.seed)
        values = solved({name: np.asarray(envs.arrays[name]) for name in envs.program.fields})
        differ = values.max(1) > np.where(values == -2, 2, values).min(1)
        print(f"{given.positions} positions of {source}, moves differ in {differ.sum()}", flush=True)
        for name, player in {**contestants, f"UCT, {given.playouts} playouts": uct, "random": random_player}.items():
            best = best_moves(envs, values, player)
            shares = [
                (kind, part.mean(), len(part)) for kind, part in (("", best), (" where moves differ", best[differ]))
            ]
            told = [f"{share:.1%} ({said(share, count)}){kind}" for kind, share, count in shares]
            print(f"  {name}: a best move in {', '.join(told)}", flush=True)


def said(share: float, count: int) -> str:
    """The 95 % interval."""
    low, high = interval(share, count)
    return f"{low:.1%} to {high:.1%}"


if __name__ == "__main__":
    main()
