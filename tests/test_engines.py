"""Matches against programs, each played here by a few lines of Python, and the notations that they understand."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import gpuzoo
from baselines.engines.gnubg import GnuBackgammon, fibs_board, moves_of
from baselines.engines.gnushogi import GnuShogi
from baselines.engines.gtp import Gtp
from baselines.engines.match import match, movers, position
from baselines.engines.process import Program
from baselines.engines.uci import Uci
from baselines.report.searchers import Score, interval, random_player

GTP = """
made = []
while True:
    words = input().split()
    if words[0] == "play":
        made.append(words[2])
    if words[0] == "clear_board":
        made.clear()
    if words[0] == "nothing":
        print("? unknown command\\n", flush=True)
        continue
    reply = ""
    if words[0] == "genmove":
        assert words[1] == ("black", "white")[len(made) % 2]
        reply = ANSWER
        made.append(reply)
    print(f"= {reply}\\n", flush=True)
"""
FOOLS_MATE = "f2f3 e7e5 g2g4 d8h4".split()
UCI = f"""
print("Somebody's program", flush=True)
moves = {FOOLS_MATE}
while True:
    words = input().split()
    if words[0] == "uci":
        print("id name fake\\noption name Skill Level type spin default 20\\nuciok", flush=True)
    if words[0] == "isready":
        print("readyok", flush=True)
    if words[0] == "position":
        assert words[1] == "fen" and words[7] == "1"
        made = words[9:]
    if words[0] == "go":
        assert words[1:] == ["depth", "1"]
        print("info depth 1\\nbestmove", MOVE, "ponder e2e4", flush=True)
"""
USI = """
while True:
    words = input().split()
    if words[0] == "usi":
        print("usiok", flush=True)
    if words[0] == "isready":
        print("readyok", flush=True)
    if words[0] == "position":
        made = words[7:]
    if words[0] == "go":
        print("bestmove", ["7g7f", "3c3d", "8h2b+", "3a2b", "B*4e", "resign"][len(made)], flush=True)
"""
GNUSHOGI = """
moves = ["7g7f", "3c3d", "8h2b+", "3a2b", "B*4e", "B*5e"]
print("GNU Shogi", flush=True)
while True:
    line = input()
    if line == "new":
        made = 0
    if line == "depth":
        print("depth = ", end="", flush=True)
        assert input() == "1"
    if line == "1z1z":
        print("Illegal move (no match)", flush=True)
    elif line == "go" or line[1] == "*" or line[0].isdigit():
        move = moves[made] if line == "go" else line
        print(f"{made // 2 + 1}. {'... ' if line == 'go' else ''}{move} 300", flush=True)
        made += 1
"""
GNUBG = """
import socket
port = int(input().rsplit(":", 1)[1])
server = socket.create_server(("127.0.0.1", port))
print(f"Waiting for a connection from 127.0.0.1:{port}...", flush=True)
file = server.accept()[0].makefile("rw")
while True:
    words = file.readline().strip().split(":")
    print(words, flush=True)
    assert words[:4] == ["board", "You", "Opponent", "9999"]
    file.write("25/20 20/14 \\n")
    file.flush()
"""


@pytest.fixture
def program(tmp_path):
    """Makes commands of programs."""

    def made(code):
        path = tmp_path / "program.py"
        path.write_text(code)
        return f"{sys.executable} {path}"

    return made


def by_name(moves):
    """A player whose moves are written down."""

    def play(envs):
        chosen = torch.zeros(envs.num_envs, dtype=torch.int64)
        for k in range(envs.num_envs):
            if not (envs.arrays["ended"][k] | envs.arrays["waiting"][k]):
                chosen[k] = position(envs, k, []).action(moves[int(envs.arrays["moves"][k])])
        return chosen

    return play


def test_go_by_gtp(program):
    """Whoever passes as white, as the komi wins, has the game; the second program gives up."""
    engine = Gtp(program(GTP.replace("ANSWER", "'PASS'")))
    score = match("Go-v0", by_name(["pass"] * 100), engine, games=4, opening=0, config={"size": 5})
    assert score == Score(wins=2, draws=0, losses=2)
    with pytest.raises(RuntimeError, match="refuses 'nothing': unknown command"):
        engine.ask("nothing")
    engine.close()
    engine = Gtp(program(GTP.replace("ANSWER", "'resign'")))
    assert match("Go-v0", random_player, engine, games=4, config={"size": 5}) == Score(4, 0, 0)
    engine.close()


def test_an_illegal_move(program):
    engine = Gtp(program(GTP.replace("ANSWER", "'E9'")))
    with pytest.raises(RuntimeError, match="the program moves E9, which is not legal after"):
        match("Go-v0", random_player, engine, games=2, opening=0, config={"size": 5})
    engine.close()


def test_chess_by_uci(program):
    """Both play the fool's mate, so black wins."""
    command = program(UCI.replace("MOVE", "moves[len(made)]"))
    engine = Uci(command, "depth 1", {"Skill Level": "0"})
    assert match("Chess-v0", by_name(FOOLS_MATE), engine, games=2, opening=0) == Score(1, 0, 1)
    engine.close()
    with pytest.raises(RuntimeError, match="no option 'Elo', only Skill Level"):
        Uci(command, options={"Elo": "1000"})


def test_shogi_by_usi(program):
    engine = Uci(program(USI), dialect="usi")
    moves = ["7g7f", "3c3d", "8h2b+", "3a2b", "B*4e", "B*5e"]
    assert match("Shogi-v0", by_name(moves), engine, games=2, opening=0, max_moves=6).wins == 1
    engine.close()


def test_gnu_shogi(program):
    engine = GnuShogi(program(GNUSHOGI))
    moves = ["7g7f", "3c3d", "8h2b+", "3a2b", "B*4e", "B*5e"]
    assert match("Shogi-v0", by_name(moves), engine, games=2, opening=0, max_moves=6) == Score(0, 2, 0)
    with pytest.raises(RuntimeError, match="refuses the move 1z1z"):
        engine.move("1z1z")
    engine.close()


def test_gnu_backgammon(program):
    """A checker enters by one die, and goes on by the other."""
    envs = gpuzoo.Simulator(gpuzoo.get("Backgammon-v0"), 1, device="cpu", official=True, autoreset_mode="disabled")
    envs.reset(seed=0)
    board = np.zeros((1, 28), np.int8)
    board[0, [24, 18, 23, 25, 27]] = 1, 1, -1, -2, -12  # one on the bar, one on point 6
    state = {"board": board, "to_move": np.zeros(1, np.int32), "rolled": np.array([[5, 6]], np.int8)}
    state |= {name: np.array([[0, 0, 0, 0, k, k]]) for name, k in (("dice", 1), ("legal", 2))}
    envs.set_state(state)
    now = position(envs, 0, [])
    words = fibs_board(now).split(":")
    assert words[6:32] == ["-2", "-1", "0", "0", "0", "0", "1", *["0"] * 18, "1"]
    assert words[33:37] == ["5", "6", "5", "6"]
    engine, made = GnuBackgammon(program(GNUBG)), []
    for _ in range(2):
        now = position(envs, 0, [])
        made.append(now.name(engine.choose(now)))
        envs.arrays["action"][0, movers(envs)[0]] = now.action(made[-1])
        envs.step()
    assert made == ["bar/20", "20/14"]
    engine.close()


def test_moves_of_gnu_backgammon():
    assert moves_of("8/5 6/5 \n") == ["8/5", "6/5"]
    assert moves_of("bar/22*/16 6/3(2)") == ["bar/22", "22/16", "6/3", "6/3"]
    assert moves_of("\n") == []
    with pytest.raises(RuntimeError, match="'roll', which is no move"):
        moves_of("roll\n")


def test_programs_that_fail(program):
    with pytest.raises(RuntimeError, match="cannot be started"):
        Program("no-such-program")
    ended = Program(program("print('bye')"))
    assert ended.read() == "bye"
    with pytest.raises(RuntimeError, match="has ended"):
        ended.read()
    ended.close()
    silent = Program(program("import time; time.sleep(60)"), seconds=0.2)
    with pytest.raises(RuntimeError, match=r"has said nothing for 0\.2 seconds"):
        silent.read()
    silent.close()
    silent.close()


def test_odd_games():
    with pytest.raises(ValueError, match="games must be even"):
        match("Go-v0", random_player, None, games=3)


def test_intervals():
    """Wilson's, as in Brown, Cai & DasGupta (2001): 0 and 10 of 10."""
    assert interval(0.0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert interval(1.0, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert Score(40, 20, 40).interval == pytest.approx((0.4038, 0.5962), abs=1e-4)


def test_names_of_moves():
    """tests/integrations/pgx compares those of chess and shogi with python-chess and python-shogi."""
    go = gpuzoo.get("Go-v0")
    cfg = go.Config(size=9)
    assert [go.move_name(cfg, {}, k) for k in (0, 8, 72, 80, 81)] == ["A9", "J9", "A1", "J1", "pass"]
    backgammon = gpuzoo.get("Backgammon-v0")
    names = [backgammon.move_name(None, {}, action) for action in (3, 6 * 1 + 2, 6 * 2, 6 * 21 + 5, 6 * 25)]
    assert names == ["-", "bar/22", "24/23", "5/off", "1/off"]
