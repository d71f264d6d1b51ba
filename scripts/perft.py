"""Counts lines of play of chess by the compiled rules, on one core: how fast legal moves are found and made.

    python scripts/perft.py [--depth 5]

Env d of a batch holds the position after d moves. The last move of a line is counted, not made, as chess programs do.
"""

from __future__ import annotations

import argparse
import ctypes
import time

from gpuzoo import Simulator, get
from gpuzoo.core.backend_cpu import compile_host

#: the start, and "Kiwipete", with the published numbers of lines of 1 to 6 and 1 to 5 moves
POSITIONS = {
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1": (20, 400, 8_902, 197_281, 4_865_609, 119_060_324),
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1": (48, 2_039, 97_862, 4_085_603, 193_690_690),
}
KEPT = (
    "pawns knights bishops rooks queens kings own hash to_move castling en_passant halfmove_clock fullmove_number moves"
)
DRIVER = """
namespace gz {
static u64 lines(const Store &s, int depth, i64 i) {
  u64 total = 0;
  for (int word = 0; word < PLANES; ++word) {
    const u64 legal = s.field_legal[i * PLANES + word];
    if (depth == 1) total += (u64)popcount(legal);
    for (u64 left = depth == 1 ? 0 : legal; left; left &= left - 1) {
      const i64 j = i + 1;
      KEEP
      const int now = s.field_moves[i] % HISTORY, next = (now + 1) % HISTORY;
      u8 *const boards = s.field_board;
      __builtin_memcpy(boards + (j * HISTORY + next) * CELLS, boards + (i * HISTORY + now) * CELLS, CELLS);
      State v = load(s, j);
      Env e = bind(s, v, j, 0, 0, 0);
      move_piece(e, transposed(cell_of(left & (~left + 1))) * PLANES + e.plane_of[word]);
      turn_board(e);
      find_legal_moves(e);
      save(s, j, v);
      total += lines(s, depth - 1, j);
    }
  }
  return total;
}
extern "C" u64 gz_lines(const Store *s, int depth) { return lines(*s, depth, 0); }
}
""".replace("KEEP", " ".join(f"s.field_{name}[j] = s.field_{name}[i];" for name in KEPT.split()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=5, help="moves of a line")
    depth = parser.parse_args().depth
    for fen, known in POSITIONS.items():
        sim = Simulator(get("Chess-v0"), depth + 1, device="cpu", threads=1, fen=fen)
        sim.reset(seed=0)
        library = ctypes.CDLL(str(compile_host(sim.program.code + DRIVER, "perft")))
        count = library.gz_lines
        count.argtypes, count.restype = [ctypes.c_void_p, ctypes.c_int], ctypes.c_ulonglong
        begin = time.process_time()
        found = count(sim._store, depth)
        seconds = time.process_time() - begin
        if depth <= len(known) and found != known[depth - 1]:
            raise SystemExit(f"{fen}: {found} lines of {depth} moves, but {known[depth - 1]} are published")
        print(f"{fen}: {found:,} lines of {depth} moves, {found / seconds / 1e6:.0f} M per CPU second")


if __name__ == "__main__":
    main()
